<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en" sourcelanguage="en">
<context>
    <name>Answers</name>
    <message numerus="yes">
        <source>%n oldest message(s) did not fit into the context and were left out.</source>
        <translation>
            <numerusform>The oldest message did not fit into the context and was left out.</numerusform>
            <numerusform>The %n oldest messages did not fit into the context and were left out.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ChatFiles</name>
    <message numerus="yes">
        <source>%n chat(s) were exported to {file}.</source>
        <translation>
            <numerusform>%n chat was exported to {file}.</numerusform>
            <numerusform>%n chats were exported to {file}.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s) were read in.</source>
        <translation>
            <numerusform>%n chat was read in.</numerusform>
            <numerusform>%n chats were read in.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n deleted chat(s) removed for good.</source>
        <translation>
            <numerusform>%n deleted chat removed for good.</numerusform>
            <numerusform>%n deleted chats removed for good.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>EngineSection</name>
    <message numerus="yes">
        <source>More threads than the %n CPU(s) here make every answer slower.</source>
        <translation>
            <numerusform>More threads than the one CPU here make every answer slower.</numerusform>
            <numerusform>More threads than the %n CPUs here make every answer slower.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Figures</name>
    <message numerus="yes">
        <source>%n pass(es)</source>
        <translation>
            <numerusform>%n pass</numerusform>
            <numerusform>%n passes</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%n token</numerusform>
            <numerusform>%n tokens</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>FileWork</name>
    <message numerus="yes">
        <source>The check was stopped; %n file(s) were found intact.</source>
        <translation>
            <numerusform>The check was stopped; %n file was found intact.</numerusform>
            <numerusform>The check was stopped; %n files were found intact.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n file(s) checked: no fault found.</source>
        <translation>
            <numerusform>%n file checked: no fault found.</numerusform>
            <numerusform>%n files checked: no fault found.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Header</name>
    <message numerus="yes">
        <source>%n thread(s)</source>
        <translation>
            <numerusform>%n thread</numerusform>
            <numerusform>%n threads</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ImportDialog</name>
    <message numerus="yes">
        <source>Import %n file(s)</source>
        <translation>
            <numerusform>Import %n file</numerusform>
            <numerusform>Import %n files</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ModelsKeeper</name>
    <message numerus="yes">
        <source>%n model file(s) are missing or changed since the last check: {names}.</source>
        <translation>
            <numerusform>%n model file is missing or changed since the last check: {names}.</numerusform>
            <numerusform>%n model files are missing or changed since the last check: {names}.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>PageHead</name>
    <message numerus="yes">
        <source>{cpu} · %n CPU(s) · {free} of {total} memory free</source>
        <translation>
            <numerusform>{cpu} · %n CPU · {free} of {total} memory free</numerusform>
            <numerusform>{cpu} · %n CPUs · {free} of {total} memory free</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Pages</name>
    <message numerus="yes">
        <source>%n log file(s) saved.</source>
        <translation>
            <numerusform>%n log file saved.</numerusform>
            <numerusform>%n log files saved.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>PairCard</name>
    <message numerus="yes">
        <source>{device} · %n thread(s)</source>
        <translation>
            <numerusform>{device} · %n thread</numerusform>
            <numerusform>{device} · %n threads</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>PlacesDialog</name>
    <message numerus="yes">
        <source>Look at %n file(s)</source>
        <translation>
            <numerusform>Look at %n file</numerusform>
            <numerusform>Look at %n files</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Sidebar</name>
    <message numerus="yes">
        <source>%n result(s)</source>
        <translation>
            <numerusform>%n result</numerusform>
            <numerusform>%n results</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Transcript</name>
    <message numerus="yes">
        <source>%n older message(s) did not fit in the context.</source>
        <translation>
            <numerusform>One older message did not fit in the context.</numerusform>
            <numerusform>%n older messages did not fit in the context.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%n token</numerusform>
            <numerusform>%n tokens</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>WelcomePage</name>
    <message numerus="yes">
        <source>{cpu} · %n CPU(s) · {free} of {total} memory free</source>
        <translation>
            <numerusform>{cpu} · %n CPU · {free} of {total} memory free</numerusform>
            <numerusform>{cpu} · %n CPUs · {free} of {total} memory free</numerusform>
        </translation>
    </message>
</context>
</TS>
