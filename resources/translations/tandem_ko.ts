<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="ko" sourcelanguage="en">
<context>
    <name>AboutSection</name>
    <message>
        <source>About</source>
        <translation>정보</translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>키보드 단축키</translation>
    </message>
    <message>
        <source>Tandem {version}</source>
        <translation>Tandem {version}</translation>
    </message>
    <message>
        <source>Free software under the Apache licence 2.0.</source>
        <translation>Apache 라이선스 2.0을 따르는 자유 소프트웨어입니다.</translation>
    </message>
</context>
<context>
    <name>Answers</name>
    <message>
        <source>There is no model in use yet.</source>
        <translation>아직 사용 중인 모델이 없습니다.</translation>
    </message>
    <message>
        <source>Choose one, or try the demo.</source>
        <translation>모델을 선택하거나 데모를 사용해 보세요.</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>모델 선택</translation>
    </message>
    <message>
        <source>One message waits already.</source>
        <translation>이미 대기 중인 메시지가 하나 있습니다.</translation>
    </message>
    <message>
        <source>Send this one when the answer is there.</source>
        <translation>답변이 끝난 뒤에 보내세요.</translation>
    </message>
    <message numerus="yes">
        <source>%n oldest message(s) did not fit into the context and were left out.</source>
        <translation>
            <numerusform>가장 오래된 메시지 %n개가 컨텍스트에 들어가지 않아 제외되었습니다.</numerusform>
        </translation>
    </message>
    <message>
        <source>A larger context in the settings keeps more of a long chat.</source>
        <translation>설정에서 컨텍스트를 늘리면 긴 대화를 더 많이 유지할 수 있습니다.</translation>
    </message>
</context>
<context>
    <name>AppearanceSection</name>
    <message>
        <source>Appearance</source>
        <translation>화면</translation>
    </message>
    <message>
        <source>Theme</source>
        <translation>테마</translation>
    </message>
    <message>
        <source>System follows light and dark of your desktop as they change.</source>
        <translation>‘시스템’을 선택하면 운영 체제의 라이트·다크 모드를 바로 따라갑니다.</translation>
    </message>
    <message>
        <source>Text size</source>
        <translation>글자 크기</translation>
    </message>
    <message>
        <source>Of everything in the window, spacing included.</source>
        <translation>간격을 포함해 창 전체에 적용됩니다.</translation>
    </message>
    <message>
        <source>Language</source>
        <translation>언어</translation>
    </message>
    <message>
        <source>Of the window. The model answers in the language that you write in.</source>
        <translation>창에 표시되는 언어입니다. 모델은 사용자가 쓴 언어로 답변합니다.</translation>
    </message>
    <message>
        <source>System</source>
        <translation>시스템</translation>
    </message>
    <message>
        <source>Light</source>
        <translation>라이트</translation>
    </message>
    <message>
        <source>Dark</source>
        <translation>다크</translation>
    </message>
    <message>
        <source>As the system</source>
        <translation>시스템 설정에 따름</translation>
    </message>
</context>
<context>
    <name>CardMenu</name>
    <message>
        <source>Cancel the download…</source>
        <translation>다운로드 취소…</translation>
    </message>
    <message>
        <source>Start again from the beginning</source>
        <translation>처음부터 다시 받기</translation>
    </message>
    <message>
        <source>Verify files</source>
        <translation>파일 검증</translation>
    </message>
    <message>
        <source>Show in folder</source>
        <translation>폴더에서 보기</translation>
    </message>
    <message>
        <source>Copy address and file names</source>
        <translation>주소와 파일 이름 복사</translation>
    </message>
    <message>
        <source>Remove…</source>
        <translation>제거…</translation>
    </message>
    <message>
        <source>Remove… (not while it is in use)</source>
        <translation>제거…(사용 중에는 불가)</translation>
    </message>
    <message>
        <source>Cancel the download of {name}?</source>
        <translation>{name} 다운로드를 취소할까요?</translation>
    </message>
    <message>
        <source>{size} here so far. If this is kept, the next download goes on from there.</source>
        <translation>지금까지 {size} 받았습니다. 보관하면 다음에 다운로드할 때 이어서 받습니다.</translation>
    </message>
    <message>
        <source>Cancel, keep it</source>
        <translation>취소하고 보관</translation>
    </message>
    <message>
        <source>Cancel, remove it</source>
        <translation>취소하고 제거</translation>
    </message>
    <message>
        <source>Go on downloading</source>
        <translation>계속 다운로드</translation>
    </message>
    <message>
        <source>Remove {name} from this machine?</source>
        <translation>이 컴퓨터에서 {name} 모델을 제거할까요?</translation>
    </message>
    <message>
        <source>This frees {size}. It can be downloaded again at any time.</source>
        <translation>{size} 공간이 확보됩니다. 언제든지 다시 다운로드할 수 있습니다.</translation>
    </message>
    <message>
        <source>Tandem forgets its files. They stay where they are.</source>
        <translation>Tandem 목록에서만 제거합니다. 파일은 원래 위치에 그대로 있습니다.</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>제거</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>그대로 두기</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>복사됨</translation>
    </message>
    <message>
        <source>Cancel the download</source>
        <translation>다운로드 취소</translation>
    </message>
    <message>
        <source>Not now</source>
        <translation>나중에</translation>
    </message>
</context>
<context>
    <name>ChatFiles</name>
    <message>
        <source>The chat was exported to {file}.</source>
        <translation>대화를 {file} 파일로 내보냈습니다.</translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s) were exported to {file}.</source>
        <translation>
            <numerusform>대화 %n개를 {file} 파일로 내보냈습니다.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n chat(s) were read in.</source>
        <translation>
            <numerusform>대화 %n개를 가져왔습니다.</numerusform>
        </translation>
    </message>
    <message>
        <source>Chat</source>
        <translation>대화</translation>
    </message>
    <message>
        <source>You</source>
        <translation>나</translation>
    </message>
    <message>
        <source>Assistant</source>
        <translation>어시스턴트</translation>
    </message>
    <message>
        <source>Thought</source>
        <translation>생각</translation>
    </message>
    <message>
        <source>Thought for {seconds} s</source>
        <translation>{seconds}초 동안 생각함</translation>
    </message>
    <message>
        <source>Stopped</source>
        <translation>중지됨</translation>
    </message>
    <message>
        <source>Reached the longest answer</source>
        <translation>최대 답변 길이에 도달함</translation>
    </message>
    <message>
        <source>The context was full</source>
        <translation>컨텍스트가 가득 참</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>실패함</translation>
    </message>
    <message>
        <source>Interrupted</source>
        <translation>중단됨</translation>
    </message>
    <message>
        <source>{rate} tok/s</source>
        <translation>{rate} tok/s</translation>
    </message>
    <message>
        <source>{tokens} tokens per pass</source>
        <translation>패스당 {tokens}토큰</translation>
    </message>
    <message>
        <source>{percent} % acceptance rate</source>
        <translation>수락률 {percent}%</translation>
    </message>
    <message>
        <source>first token after {seconds} s</source>
        <translation>첫 토큰까지 {seconds}초</translation>
    </message>
    <message>
        <source>draft length {length}</source>
        <translation>드래프트 길이 {length}</translation>
    </message>
    <message>
        <source>Other versions of messages in this chat that are not shown here: {count}.</source>
        <translation>이 대화에서 여기에 표시되지 않은 다른 버전의 메시지: {count}개</translation>
    </message>
    <message>
        <source>{n} imported, {m} were here already.</source>
        <translation>{n}개를 가져왔고, {m}개는 이미 있습니다.</translation>
    </message>
    <message numerus="yes">
        <source>%n deleted chat(s) removed for good.</source>
        <translation>
            <numerusform>삭제한 대화 %n개를 완전히 제거했습니다.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>ChatModel</name>
    <message>
        <source>Today</source>
        <translation>오늘</translation>
    </message>
    <message>
        <source>Yesterday</source>
        <translation>어제</translation>
    </message>
    <message>
        <source>Previous 7 days</source>
        <translation>지난 7일</translation>
    </message>
    <message>
        <source>Older</source>
        <translation>이전</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>새 대화</translation>
    </message>
    <message>
        <source>d MMM</source>
        <comment>a date of this year, in Qt&apos;s format</comment>
        <translation>M월 d일</translation>
    </message>
    <message>
        <source>open</source>
        <comment>said of the chat that is shown</comment>
        <translation>열려 있음</translation>
    </message>
</context>
<context>
    <name>ChatPage</name>
    <message>
        <source>Copied.</source>
        <translation>복사했습니다.</translation>
    </message>
    <message>
        <source>Markdown (*.md)</source>
        <translation>Markdown (*.md)</translation>
    </message>
    <message>
        <source>JSON (*.json)</source>
        <translation>JSON (*.json)</translation>
    </message>
    <message>
        <source>tandem-chats</source>
        <translation>tandem-모든-대화</translation>
    </message>
    <message>
        <source>tandem-chat</source>
        <translation>tandem-대화</translation>
    </message>
    <message>
        <source>Export</source>
        <translation>내보내기</translation>
    </message>
    <message>
        <source>Import chats</source>
        <translation>대화 가져오기</translation>
    </message>
    <message>
        <source>This model cannot think first.</source>
        <translation>이 모델은 먼저 생각할 수 없습니다.</translation>
    </message>
    <message>
        <source>Open a link</source>
        <translation>링크 열기</translation>
    </message>
    <message>
        <source>The model wrote this link. Open it in your browser?</source>
        <translation>모델이 작성한 링크입니다. 브라우저에서 열까요?</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>열기</translation>
    </message>
</context>
<context>
    <name>Chats</name>
    <message>
        <source>Undo</source>
        <translation>실행 취소</translation>
    </message>
    <message>
        <source>Deleted “{title}”.</source>
        <translation>“{title}” 대화를 삭제했습니다.</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>새 대화</translation>
    </message>
</context>
<context>
    <name>CheckBar</name>
    <message>
        <source>Stop</source>
        <translation>중지</translation>
    </message>
    <message>
        <source>Verifying files</source>
        <translation>파일을 검증하는 중</translation>
    </message>
    <message>
        <source>Importing files</source>
        <translation>파일을 가져오는 중</translation>
    </message>
    <message>
        <source>Moving the models</source>
        <translation>모델을 옮기는 중</translation>
    </message>
</context>
<context>
    <name>Chips</name>
    <message>
        <source>Drafter</source>
        <translation>드래프터</translation>
    </message>
    <message>
        <source>Drafter · {length}</source>
        <translation>드래프터 · {length}</translation>
    </message>
    <message>
        <source>The drafter proposes the next tokens; the model checks them together in one pass.</source>
        <translation>드래프터가 다음 토큰들을 제안하고, 모델이 이를 한 패스에서 함께 확인합니다.</translation>
    </message>
    <message>
        <source>The model thinks before it answers; the thought is folded above the answer.</source>
        <translation>모델이 답변하기 전에 생각합니다. 생각은 답변 위에 접혀 있습니다.</translation>
    </message>
    <message>
        <source>Thinking</source>
        <translation>생각하기</translation>
    </message>
    <message>
        <source>Marks the tokens that the drafter proposed: which were accepted, and where one was rejected.</source>
        <translation>드래프터가 제안한 토큰을 표시합니다. 무엇이 수락되었고 어디에서 거절되었는지 볼 수 있습니다.</translation>
    </message>
    <message>
        <source>Drafted tokens</source>
        <translation>드래프트한 토큰</translation>
    </message>
</context>
<context>
    <name>ComparePage</name>
    <message>
        <source>With and without the drafter</source>
        <translation>드래프터를 켰을 때와 껐을 때</translation>
    </message>
    <message>
        <source>Measuring both ways with one click, with repeats and their spread, comes with a later version. Nothing is drawn here until it was measured.</source>
        <translation>두 방식을 클릭 한 번으로 반복 측정하고 편차까지 보여 주는 기능은 이후 버전에서 제공됩니다. 측정하지 않은 것은 여기에 그리지 않습니다.</translation>
    </message>
    <message>
        <source>What you can do today</source>
        <translation>지금 할 수 있는 것</translation>
    </message>
    <message>
        <source>Ask something in the chat. Under the answer stand its figures.</source>
        <translation>대화에서 질문하세요. 답변 아래에 측정값이 표시됩니다.</translation>
    </message>
    <message>
        <source>Have the same question answered without the drafter. Both answers are kept.</source>
        <translation>같은 질문에 드래프터 없이 다시 답변하게 하세요. 두 답변이 모두 보관됩니다.</translation>
    </message>
    <message>
        <source>Switch between them with ‹ and › under the answer and compare the tok/s.</source>
        <translation>답변 아래의 ‹ › 버튼으로 두 답변을 오가며 tok/s를 비교하세요.</translation>
    </message>
    <message>
        <source>One pair of runs proves little: other programs, the text and its length change the speed. At a temperature above 0 the two texts differ as well.</source>
        <translation>한 번씩 실행한 결과로는 단정할 수 없습니다. 다른 프로그램, 텍스트의 내용과 길이에 따라 속도가 달라집니다. 온도가 0보다 높으면 두 텍스트도 서로 다릅니다.</translation>
    </message>
    <message>
        <source>Answer again without the drafter</source>
        <translation>드래프터 없이 다시 답변</translation>
    </message>
    <message>
        <source>Answer again with the drafter</source>
        <translation>드래프터로 다시 답변</translation>
    </message>
    <message>
        <source>An answer is running.</source>
        <translation>답변이 진행 중입니다.</translation>
    </message>
    <message>
        <source>The open chat has no question yet.</source>
        <translation>열려 있는 대화에 아직 질문이 없습니다.</translation>
    </message>
    <message>
        <source>There is no working drafter in use, so every answer is one without it.</source>
        <translation>사용할 수 있는 드래프터가 없어 모든 답변이 드래프터 없이 생성됩니다.</translation>
    </message>
</context>
<context>
    <name>Composer</name>
    <message>
        <source>Text only for now: Tandem cannot take pictures, sound or files yet.</source>
        <translation>현재는 텍스트만 지원합니다. 이미지, 소리, 파일은 아직 사용할 수 없습니다.</translation>
    </message>
    <message>
        <source>That is more text than any model can take: {limit} characters is the limit.</source>
        <translation>어떤 모델도 처리할 수 없을 만큼 긴 텍스트입니다. 최대 {limit}자까지 쓸 수 있습니다.</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>중지</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>보내기</translation>
    </message>
    <message>
        <source>Enter sends · Shift+Enter starts a new line</source>
        <translation>Enter로 보내기 · Shift+Enter로 줄 바꿈</translation>
    </message>
    <message>
        <source>Write a message…</source>
        <translation>메시지를 입력하세요…</translation>
    </message>
    <message>
        <source>Message</source>
        <translation>메시지</translation>
    </message>
    <message>
        <source>Editing an earlier message — Esc cancels</source>
        <translation>이전 메시지 편집 중 — Esc로 취소</translation>
    </message>
    <message>
        <source>Cancel the edit</source>
        <translation>편집 취소</translation>
    </message>
    <message>
        <source>Pasted text · {count} characters</source>
        <translation>붙여 넣은 텍스트 · {count}자</translation>
    </message>
    <message>
        <source>Remove the pasted text</source>
        <translation>붙여 넣은 텍스트 제거</translation>
    </message>
    <message>
        <source>Sent after this answer: {text}</source>
        <translation>이 답변 뒤에 보냄: {text}</translation>
    </message>
    <message>
        <source>Take back</source>
        <translation>보내기 취소</translation>
    </message>
</context>
<context>
    <name>Controller</name>
    <message>
        <source>The file with your chats was damaged. It is kept as {path}; a new one was begun.</source>
        <translation>대화 파일이 손상되었습니다. 기존 파일은 {path}에 보관하고 새 파일을 만들었습니다.</translation>
    </message>
    <message>
        <source>Something went wrong inside Tandem.</source>
        <translation>Tandem 내부에서 문제가 발생했습니다.</translation>
    </message>
    <message>
        <source>The log says what happened.</source>
        <translation>자세한 내용은 로그에 있습니다.</translation>
    </message>
    <message>
        <source>Open the logs</source>
        <translation>로그 열기</translation>
    </message>
    <message>
        <source>The context is now {n} tokens. Settings › Engine changes it.</source>
        <translation>이제 컨텍스트는 {n}토큰입니다. 설정 › 엔진에서 바꿀 수 있습니다.</translation>
    </message>
</context>
<context>
    <name>DataSection</name>
    <message>
        <source>Chats and files</source>
        <translation>대화 및 파일</translation>
    </message>
    <message>
        <source>Markdown…</source>
        <translation>Markdown…</translation>
    </message>
    <message>
        <source>Export all as Markdown</source>
        <translation>모두 Markdown으로 내보내기</translation>
    </message>
    <message>
        <source>JSON…</source>
        <translation>JSON…</translation>
    </message>
    <message>
        <source>Export all as JSON</source>
        <translation>모두 JSON으로 내보내기</translation>
    </message>
    <message>
        <source>Export all chats</source>
        <translation>모든 대화 내보내기</translation>
    </message>
    <message>
        <source>Markdown to read, JSON to keep everything and read it in again.</source>
        <translation>Markdown은 읽기에 좋고, JSON은 모든 내용을 담아 다시 가져올 수 있습니다.</translation>
    </message>
    <message>
        <source>Import…</source>
        <translation>가져오기…</translation>
    </message>
    <message>
        <source>Import chats</source>
        <translation>대화 가져오기</translation>
    </message>
    <message>
        <source>From a JSON file of Tandem&apos;s. Chats that are here stay as they are.</source>
        <translation>Tandem에서 내보낸 JSON 파일을 가져옵니다. 기존 대화는 그대로 유지됩니다.</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>열기</translation>
    </message>
    <message>
        <source>Open Tandem&apos;s folder</source>
        <translation>Tandem 폴더 열기</translation>
    </message>
    <message>
        <source>Tandem&apos;s folder</source>
        <translation>Tandem 폴더</translation>
    </message>
    <message>
        <source>Chats and settings, on this machine only.</source>
        <translation>대화와 설정은 이 컴퓨터에만 저장됩니다.</translation>
    </message>
    <message>
        <source>Open the folder with the logs</source>
        <translation>로그 폴더 열기</translation>
    </message>
    <message>
        <source>Save as zip…</source>
        <translation>ZIP으로 저장…</translation>
    </message>
    <message>
        <source>Save logs as zip</source>
        <translation>로그를 ZIP으로 저장</translation>
    </message>
    <message>
        <source>Logs</source>
        <translation>로그</translation>
    </message>
    <message>
        <source>What the engine said, for reporting a fault. They hold no chat text.</source>
        <translation>문제를 신고할 때 쓰는 엔진의 기록입니다. 대화 내용은 들어 있지 않습니다.</translation>
    </message>
    <message>
        <source>Remove now</source>
        <translation>지금 제거</translation>
    </message>
    <message>
        <source>Remove deleted chats now</source>
        <translation>삭제한 대화 지금 제거</translation>
    </message>
    <message>
        <source>Deleted chats</source>
        <translation>삭제한 대화</translation>
    </message>
    <message>
        <source>Kept in Tandem&apos;s file for at least a day, so that they can be brought back.</source>
        <translation>되돌릴 수 있도록 최소 하루 동안 Tandem의 파일에 보관됩니다.</translation>
    </message>
</context>
<context>
    <name>DemoTile</name>
    <message>
        <source>Demo pair</source>
        <translation>데모 모델 쌍</translation>
    </message>
    <message>
        <source>Comes with Tandem and runs anywhere. It shows how a drafter works; what it says is not clever.</source>
        <translation>Tandem에 포함되어 있으며 어디서나 실행됩니다. 드래프터의 작동 방식을 보여 주기 위한 것으로, 답변은 그다지 똑똑하지 않습니다.</translation>
    </message>
    <message>
        <source>In use</source>
        <translation>사용 중</translation>
    </message>
    <message>
        <source>Use the demo pair</source>
        <translation>데모 모델 쌍 사용</translation>
    </message>
</context>
<context>
    <name>Downloads</name>
    <message>
        <source>{name} is downloaded as soon as the model folder has moved.</source>
        <translation>모델 폴더를 다 옮기면 바로 {name} 다운로드를 시작합니다.</translation>
    </message>
    <message>
        <source>{name} is downloaded as soon as {other} is done.</source>
        <translation>{other} 다운로드가 끝나면 바로 {name} 다운로드를 시작합니다.</translation>
    </message>
    <message>
        <source>{name} is here: both files are checked.</source>
        <translation>{name} 모델을 받았습니다. 두 파일 모두 확인했습니다.</translation>
    </message>
    <message>
        <source>Use it now</source>
        <translation>지금 사용</translation>
    </message>
    <message>
        <source>Show the models</source>
        <translation>모델 보기</translation>
    </message>
</context>
<context>
    <name>DraftingSection</name>
    <message>
        <source>Drafting and thinking</source>
        <translation>드래프트와 생각하기</translation>
    </message>
    <message>
        <source>Use the drafter</source>
        <translation>드래프터 사용</translation>
    </message>
    <message>
        <source>A small model guesses ahead; the large one keeps only what it would have said itself.</source>
        <translation>작은 모델이 다음 토큰을 미리 추측하고, 큰 모델은 자신이 말했을 내용만 남깁니다.</translation>
    </message>
    <message>
        <source>Draft length</source>
        <translation>드래프트 길이</translation>
    </message>
    <message>
        <source>Think first</source>
        <translation>먼저 생각하기</translation>
    </message>
    <message>
        <source>Asks the model for a thought before its answer, where it can.</source>
        <translation>가능한 모델이면 답변하기 전에 먼저 생각하게 합니다.</translation>
    </message>
    <message>
        <source>Show drafted tokens</source>
        <translation>드래프트한 토큰 표시</translation>
    </message>
    <message>
        <source>Marks in each answer what the drafter had guessed, and where it guessed wrong.</source>
        <translation>답변에서 드래프터가 추측한 부분과 추측이 틀린 곳을 표시합니다.</translation>
    </message>
    <message>
        <source>Guesses a pass. More is not always faster: later ones fit less often.</source>
        <translation>패스마다 추측할 토큰 수입니다. 뒤쪽의 추측일수록 잘 맞지 않으므로 많다고 항상 빠르지는 않습니다.</translation>
    </message>
</context>
<context>
    <name>EngineSection</name>
    <message>
        <source>Engine</source>
        <translation>엔진</translation>
    </message>
    <message>
        <source>Takes effect when the pair is loaded again.</source>
        <translation>모델 쌍을 다시 불러오면 적용됩니다.</translation>
    </message>
    <message>
        <source>Load again now</source>
        <translation>지금 다시 불러오기</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>컨텍스트</translation>
    </message>
    <message>
        <source>Tokens of a chat that the model sees at once. More takes more memory.</source>
        <translation>모델이 한 번에 볼 수 있는 대화의 토큰 수입니다. 클수록 메모리를 더 많이 씁니다.</translation>
    </message>
    <message>
        <source>Threads</source>
        <translation>스레드</translation>
    </message>
    <message>
        <source>Automatic measures at each load which number is fastest here.</source>
        <translation>‘자동’은 불러올 때마다 이 컴퓨터에서 가장 빠른 수를 측정합니다.</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>자동</translation>
    </message>
    <message>
        <source>Device</source>
        <translation>장치</translation>
    </message>
    <message>
        <source>Where target and drafter run. Automatic takes the fastest that the engine finds.</source>
        <translation>타깃과 드래프터를 실행할 장치입니다. ‘자동’은 엔진이 찾은 가장 빠른 장치를 사용합니다.</translation>
    </message>
    <message>
        <source>Type of the KV cache</source>
        <translation>KV 캐시 형식</translation>
    </message>
    <message>
        <source>f16 is exact. q8_0 takes half the memory for the context.</source>
        <translation>f16은 정확합니다. q8_0은 컨텍스트 메모리를 절반만 사용합니다.</translation>
    </message>
    <message>
        <source>{name} · {memory}</source>
        <translation>{name} · {memory}</translation>
    </message>
    <message>
        <source>{name} (not found)</source>
        <translation>{name}(찾을 수 없음)</translation>
    </message>
    <message numerus="yes">
        <source>More threads than the %n CPU(s) here make every answer slower.</source>
        <translation>
            <numerusform>이 컴퓨터의 CPU %n개보다 스레드가 많으면 모든 답변이 느려집니다.</numerusform>
        </translation>
    </message>
    <message>
        <source>With q8_0 the target&apos;s numbers change a little, and the drafter&apos;s guesses may no longer fit: acceptance once fell to almost nothing. Tandem says so when it happens.</source>
        <translation>q8_0을 쓰면 타깃의 계산값이 조금 달라져 드래프터의 추측이 맞지 않을 수 있습니다. 수락률이 거의 0까지 떨어진 적도 있으며, 그럴 때는 Tandem이 알려 줍니다.</translation>
    </message>
    <message>
        <source>At least {least} tokens; this is not used.</source>
        <translation>{least}토큰 이상이어야 합니다. 이 값은 사용되지 않습니다.</translation>
    </message>
    <message>
        <source>This model was trained for {most} tokens at most; this is not used.</source>
        <translation>이 모델은 최대 {most}토큰으로 학습되었습니다. 이 값은 사용되지 않습니다.</translation>
    </message>
</context>
<context>
    <name>Errors</name>
    <message>
        <source>This build of llama.cpp lacks {names}.</source>
        <translation>이 llama.cpp 빌드에는 {names} 기능이 없습니다.</translation>
    </message>
    <message>
        <source>Install the engine that Tandem was built for (llama-cpp-python 0.3.36).</source>
        <translation>Tandem에 맞는 엔진(llama-cpp-python 0.3.36)을 설치하세요.</translation>
    </message>
    <message>
        <source>Install the engine that Tandem was built for.</source>
        <translation>Tandem에 맞는 엔진을 설치하세요.</translation>
    </message>
    <message>
        <source>The engine&apos;s build of llama.cpp cannot be used: {reason}.</source>
        <translation>엔진의 llama.cpp 빌드를 사용할 수 없습니다: {reason}.</translation>
    </message>
    <message>
        <source>The engine is of another version than the app.</source>
        <translation>엔진과 앱의 버전이 다릅니다.</translation>
    </message>
    <message>
        <source>The engine is not running.</source>
        <translation>엔진이 실행 중이 아닙니다.</translation>
    </message>
    <message>
        <source>Start it again.</source>
        <translation>엔진을 다시 시작하세요.</translation>
    </message>
    <message>
        <source>The engine answered out of turn.</source>
        <translation>엔진이 순서에 맞지 않게 응답했습니다.</translation>
    </message>
    <message>
        <source>The engine cannot read this request.</source>
        <translation>엔진이 이 요청을 읽을 수 없습니다.</translation>
    </message>
    <message>
        <source>Report this fault of Tandem&apos;s.</source>
        <translation>이 Tandem 오류를 신고해 주세요.</translation>
    </message>
    <message>
        <source>The engine met a fault of its own.</source>
        <translation>엔진 내부에서 오류가 발생했습니다.</translation>
    </message>
    <message>
        <source>Try again; the log says what happened.</source>
        <translation>다시 시도하세요. 자세한 내용은 로그에 있습니다.</translation>
    </message>
    <message>
        <source>Tandem cannot write its log in {folder}.</source>
        <translation>{folder} 폴더에 로그를 쓸 수 없습니다.</translation>
    </message>
    <message>
        <source>Make room, or make the folder writable.</source>
        <translation>공간을 확보하거나 폴더에 쓰기를 허용하세요.</translation>
    </message>
    <message>
        <source>The engine ran out of memory.</source>
        <translation>엔진의 메모리가 부족합니다.</translation>
    </message>
    <message>
        <source>Choose a smaller context or model, or close other programs.</source>
        <translation>컨텍스트나 모델을 더 작은 것으로 선택하거나 다른 프로그램을 닫으세요.</translation>
    </message>
    <message>
        <source>The engine was built for a newer CPU.</source>
        <translation>엔진이 더 최신 CPU용으로 빌드되었습니다.</translation>
    </message>
    <message>
        <source>Install the build made for this machine.</source>
        <translation>이 컴퓨터에 맞는 빌드를 설치하세요.</translation>
    </message>
    <message>
        <source>The engine gave up after an error of its own.</source>
        <translation>엔진이 내부 오류로 멈췄습니다.</translation>
    </message>
    <message>
        <source>The engine crashed.</source>
        <translation>엔진이 비정상 종료되었습니다.</translation>
    </message>
    <message>
        <source>Try again; without the drafter if it comes back.</source>
        <translation>다시 시도하세요. 문제가 반복되면 드래프터 없이 시도하세요.</translation>
    </message>
    <message>
        <source>The engine was ended from outside.</source>
        <translation>엔진이 외부에서 종료되었습니다.</translation>
    </message>
    <message>
        <source>Try again; if memory was short, choose a smaller context.</source>
        <translation>다시 시도하세요. 메모리가 부족했다면 더 작은 컨텍스트를 선택하세요.</translation>
    </message>
    <message>
        <source>The engine ended by itself.</source>
        <translation>엔진이 스스로 종료되었습니다.</translation>
    </message>
    <message>
        <source>Try again; its log says more.</source>
        <translation>다시 시도하세요. 자세한 내용은 엔진 로그에 있습니다.</translation>
    </message>
    <message>
        <source>The engine did not answer any more and was ended.</source>
        <translation>엔진이 더 이상 응답하지 않아 종료했습니다.</translation>
    </message>
    <message>
        <source>Try again.</source>
        <translation>다시 시도하세요.</translation>
    </message>
    <message>
        <source>Memory ran out.</source>
        <translation>메모리가 부족합니다.</translation>
    </message>
    <message>
        <source>Close other programs and try again.</source>
        <translation>다른 프로그램을 닫고 다시 시도하세요.</translation>
    </message>
    <message>
        <source>A KV cache of the type {type} needs flash attention, which is turned off.</source>
        <translation>{type} 형식의 KV 캐시에는 플래시 어텐션이 필요하지만 꺼져 있습니다.</translation>
    </message>
    <message>
        <source>Turn flash attention on, or choose the KV type f16.</source>
        <translation>플래시 어텐션을 켜거나 KV 캐시 형식을 f16으로 선택하세요.</translation>
    </message>
    <message>
        <source>{name} cannot keep its KV cache in {type}.</source>
        <translation>{name} 모델은 KV 캐시를 {type} 형식으로 저장할 수 없습니다.</translation>
    </message>
    <message>
        <source>Choose the KV type f16.</source>
        <translation>KV 캐시 형식을 f16으로 선택하세요.</translation>
    </message>
    <message>
        <source>There is no device “{name}”.</source>
        <translation>“{name}” 장치가 없습니다.</translation>
    </message>
    <message>
        <source>Choose one of: {names}.</source>
        <translation>다음 중에서 선택하세요: {names}.</translation>
    </message>
    <message>
        <source>A context of {size} tokens is not possible with this model.</source>
        <translation>이 모델에서는 컨텍스트를 {size}토큰으로 설정할 수 없습니다.</translation>
    </message>
    <message>
        <source>Choose between {least} and {most}, which it was trained for.</source>
        <translation>모델이 학습된 범위인 {least}~{most} 사이에서 선택하세요.</translation>
    </message>
    <message>
        <source>There is not enough memory for {part} ({size} GiB file).</source>
        <translation>{part}에 필요한 메모리가 부족합니다(파일 크기 {size} GiB).</translation>
    </message>
    <message>
        <source>Close other programs, choose a smaller context, or a smaller model.</source>
        <translation>다른 프로그램을 닫거나 더 작은 컨텍스트 또는 더 작은 모델을 선택하세요.</translation>
    </message>
    <message>
        <source>{name} is of the architecture “{architecture}”, which this engine does not know.</source>
        <translation>이 엔진은 {name} 파일의 “{architecture}” 아키텍처를 지원하지 않습니다.</translation>
    </message>
    <message>
        <source>Choose a Gemma 4 model, or update Tandem.</source>
        <translation>Gemma 4 모델을 선택하거나 Tandem을 업데이트하세요.</translation>
    </message>
    <message>
        <source>{name} ends too early.</source>
        <translation>{name} 파일이 중간에 끊겨 있습니다.</translation>
    </message>
    <message>
        <source>Download it again.</source>
        <translation>다시 다운로드하세요.</translation>
    </message>
    <message>
        <source>{name} lacks parts that its kind of model needs.</source>
        <translation>{name} 파일에 이 종류의 모델에 필요한 부분이 없습니다.</translation>
    </message>
    <message>
        <source>llama.cpp could not load {name}.</source>
        <translation>llama.cpp에서 {name} 파일을 불러오지 못했습니다.</translation>
    </message>
    <message>
        <source>The log says why.</source>
        <translation>이유는 로그에 있습니다.</translation>
    </message>
    <message>
        <source>A pair is loaded already.</source>
        <translation>이미 모델 쌍을 불러왔습니다.</translation>
    </message>
    <message>
        <source>End the engine and start another to change the pair.</source>
        <translation>모델 쌍을 바꾸려면 엔진을 종료하고 다시 시작하세요.</translation>
    </message>
    <message>
        <source>No model is loaded.</source>
        <translation>불러온 모델이 없습니다.</translation>
    </message>
    <message>
        <source>Load a pair first.</source>
        <translation>먼저 모델 쌍을 불러오세요.</translation>
    </message>
    <message>
        <source>The drafter {name} could not be linked to the target.</source>
        <translation>드래프터({name})를 타깃에 연결하지 못했습니다.</translation>
    </message>
    <message>
        <source>There is not enough memory left for the drafter {name}.</source>
        <translation>드래프터({name})에 쓸 메모리가 부족합니다.</translation>
    </message>
    <message>
        <source>Answers come from the target alone; try the pair again or another.</source>
        <translation>타깃만으로 답변합니다. 모델 쌍을 다시 불러오거나 다른 쌍을 사용해 보세요.</translation>
    </message>
    <message>
        <source>The engine ended while it loaded the drafter ({reason}).</source>
        <translation>드래프터를 불러오는 중에 엔진이 종료되었습니다({reason}).</translation>
    </message>
    <message>
        <source>The drafter failed: {reason}</source>
        <translation>드래프터 오류: {reason}</translation>
    </message>
    <message>
        <source>The answer went on without it; try again.</source>
        <translation>답변은 드래프터 없이 이어졌습니다. 다시 시도하세요.</translation>
    </message>
    <message>
        <source>A draft length of {length} is not possible.</source>
        <translation>사용할 수 없는 드래프트 길이입니다: {length}.</translation>
    </message>
    <message>
        <source>“{length}” is no draft length.</source>
        <translation>올바른 드래프트 길이가 아닙니다: “{length}”.</translation>
    </message>
    <message>
        <source>Choose off, or a number from 1 to {most}.</source>
        <translation>끄거나 1~{most} 사이의 숫자를 선택하세요.</translation>
    </message>
    <message>
        <source>This version cannot choose the draft length by itself yet.</source>
        <translation>이 버전은 아직 드래프트 길이를 자동으로 선택할 수 없습니다.</translation>
    </message>
    <message>
        <source>The prompt has {tokens} tokens and the context holds {limit}.</source>
        <translation>프롬프트는 {tokens}토큰인데 컨텍스트에는 {limit}토큰까지 들어갑니다.</translation>
    </message>
    <message>
        <source>Shorten it, or choose a larger context if the model allows one.</source>
        <translation>내용을 줄이거나, 모델이 허용하면 더 큰 컨텍스트를 선택하세요.</translation>
    </message>
    <message>
        <source>The prompt is empty.</source>
        <translation>프롬프트가 비어 있습니다.</translation>
    </message>
    <message>
        <source>Write something to answer.</source>
        <translation>답변할 내용을 입력하세요.</translation>
    </message>
    <message>
        <source>The engine could not go on with this answer.</source>
        <translation>엔진이 이 답변을 이어 갈 수 없습니다.</translation>
    </message>
    <message>
        <source>Try again; if it happens again, use a smaller context or turn the drafter off.</source>
        <translation>다시 시도하세요. 문제가 반복되면 컨텍스트를 줄이거나 드래프터를 끄세요.</translation>
    </message>
    <message>
        <source>The model produced no usable scores for the next token.</source>
        <translation>모델이 다음 토큰에 대해 쓸 수 있는 점수를 내지 못했습니다.</translation>
    </message>
    <message>
        <source>Try again or choose another device; if it happens every time, the model file is likely damaged.</source>
        <translation>다시 시도하거나 다른 장치를 선택하세요. 매번 발생하면 모델 파일이 손상되었을 가능성이 큽니다.</translation>
    </message>
    <message>
        <source>A request needs messages, a prompt or tokens.</source>
        <translation>요청에는 메시지, 프롬프트, 토큰 중 하나가 필요합니다.</translation>
    </message>
    <message>
        <source>Give exactly one of them.</source>
        <translation>그중 하나만 지정하세요.</translation>
    </message>
    <message>
        <source>A token id is outside the vocabulary.</source>
        <translation>토큰 ID가 어휘의 범위를 벗어났습니다.</translation>
    </message>
    <message>
        <source>Ids go from 0 to {most}.</source>
        <translation>ID는 0부터 {most}까지입니다.</translation>
    </message>
    <message>
        <source>A stop text is too long, or there are too many.</source>
        <translation>중지 텍스트가 너무 길거나 너무 많습니다.</translation>
    </message>
    <message>
        <source>Give at most {count} of at most {length} characters.</source>
        <translation>최대 {count}개, 각각 최대 {length}자까지 지정하세요.</translation>
    </message>
    <message>
        <source>An answer cannot have less than no tokens.</source>
        <translation>답변 길이는 0토큰보다 작을 수 없습니다.</translation>
    </message>
    <message>
        <source>Choose 0 or more tokens at most.</source>
        <translation>최대 토큰 수를 0 이상으로 선택하세요.</translation>
    </message>
    <message>
        <source>The {setting} is {value} and must be {wanted}.</source>
        <translation>{setting}에 쓸 수 없는 값입니다: {value}. 허용 범위: {wanted}.</translation>
    </message>
    <message>
        <source>Use {instead}.</source>
        <translation>권장 값: {instead}.</translation>
    </message>
    <message>
        <source>The model file has no chat template.</source>
        <translation>모델 파일에 채팅 템플릿이 없습니다.</translation>
    </message>
    <message>
        <source>The model file&apos;s chat template does not compile.</source>
        <translation>모델 파일의 채팅 템플릿을 컴파일할 수 없습니다.</translation>
    </message>
    <message>
        <source>The model file&apos;s chat template leaves out the message.</source>
        <translation>모델 파일의 채팅 템플릿이 메시지를 빠뜨립니다.</translation>
    </message>
    <message>
        <source>The model file&apos;s chat template fails on this conversation.</source>
        <translation>모델 파일의 채팅 템플릿이 이 대화에서 오류를 일으킵니다.</translation>
    </message>
    <message>
        <source>Use another file of this model, or prompt it without a template.</source>
        <translation>이 모델의 다른 파일을 사용하거나, 템플릿 없이 프롬프트를 쓰세요.</translation>
    </message>
    <message>
        <source>The model&apos;s chat template does not take this conversation: {reason}.</source>
        <translation>모델의 채팅 템플릿이 이 대화를 받아들이지 않습니다: {reason}.</translation>
    </message>
    <message>
        <source>Change the conversation, or start a new one.</source>
        <translation>대화를 바꾸거나 새 대화를 시작하세요.</translation>
    </message>
    <message>
        <source>The conversation holds no message.</source>
        <translation>대화에 메시지가 없습니다.</translation>
    </message>
    <message>
        <source>The conversation ends with a message of the role {role}.</source>
        <translation>대화가 {role} 역할의 메시지로 끝납니다.</translation>
    </message>
    <message>
        <source>Send a list of messages that ends with one from the user.</source>
        <translation>사용자 메시지로 끝나는 메시지 목록을 보내세요.</translation>
    </message>
    <message>
        <source>A system message stands in the middle of the conversation.</source>
        <translation>대화 중간에 시스템 메시지가 있습니다.</translation>
    </message>
    <message>
        <source>Put it first.</source>
        <translation>시스템 메시지를 맨 앞에 두세요.</translation>
    </message>
    <message>
        <source>out of memory</source>
        <translation>메모리 부족</translation>
    </message>
    <message>
        <source>illegal instruction</source>
        <translation>지원되지 않는 CPU 명령</translation>
    </message>
    <message>
        <source>aborted</source>
        <translation>중단됨</translation>
    </message>
    <message>
        <source>crashed</source>
        <translation>비정상 종료</translation>
    </message>
    <message>
        <source>killed</source>
        <translation>강제 종료됨</translation>
    </message>
    <message>
        <source>exited</source>
        <translation>스스로 종료됨</translation>
    </message>
    <message>
        <source>hung</source>
        <translation>응답 없음</translation>
    </message>
    <message>
        <source>the model</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>a context of {size} tokens</source>
        <translation>{size}토큰 컨텍스트</translation>
    </message>
    <message>
        <source>it gives no reason</source>
        <translation>이유를 알 수 없음</translation>
    </message>
    <message>
        <source>temperature</source>
        <translation>온도</translation>
    </message>
    <message>
        <source>top-k</source>
        <translation>Top-k</translation>
    </message>
    <message>
        <source>top-p</source>
        <translation>Top-p</translation>
    </message>
    <message>
        <source>min-p</source>
        <translation>Min-p</translation>
    </message>
    <message>
        <source>repeat penalty</source>
        <translation>반복 페널티</translation>
    </message>
    <message>
        <source>repeat penalty&apos;s reach</source>
        <translation>반복 페널티 범위</translation>
    </message>
    <message>
        <source>seed</source>
        <translation>시드</translation>
    </message>
    <message>
        <source>0 or more</source>
        <translation>0 이상</translation>
    </message>
    <message>
        <source>above 0 and at most 1</source>
        <translation>0 초과 1 이하</translation>
    </message>
    <message>
        <source>between 0 and 1</source>
        <translation>0~1</translation>
    </message>
    <message>
        <source>between {low} and {high}</source>
        <translation>{low}~{high}</translation>
    </message>
    <message>
        <source>0 to {most} tokens</source>
        <translation>0~{most}토큰</translation>
    </message>
    <message>
        <source>a whole number between 0 and {most}</source>
        <translation>0~{most} 사이의 정수</translation>
    </message>
    <message>
        <source>0 for the likeliest token each time, or 1.0</source>
        <translation>0(항상 가장 가능성 높은 토큰) 또는 1.0</translation>
    </message>
    <message>
        <source>0 for no limit, or 64</source>
        <translation>0(제한 없음) 또는 64</translation>
    </message>
    <message>
        <source>1 for no limit, or 0.95</source>
        <translation>1(제한 없음) 또는 0.95</translation>
    </message>
    <message>
        <source>0 for no limit</source>
        <translation>0(제한 없음)</translation>
    </message>
    <message>
        <source>1 for no penalty</source>
        <translation>1(페널티 없음)</translation>
    </message>
    <message>
        <source>another, or none at all</source>
        <translation>다른 값 또는 지정하지 않음</translation>
    </message>
    <message>
        <source>{name} is a folder, not a file.</source>
        <translation>{name}: 파일이 아니라 폴더입니다.</translation>
    </message>
    <message>
        <source>Choose a .gguf file inside it.</source>
        <translation>그 안의 .gguf 파일을 선택하세요.</translation>
    </message>
    <message>
        <source>{name} is a device or a pipe, not an ordinary file.</source>
        <translation>{name}: 일반 파일이 아니라 장치 또는 파이프입니다.</translation>
    </message>
    <message>
        <source>Choose a .gguf file.</source>
        <translation>.gguf 파일을 선택하세요.</translation>
    </message>
    <message>
        <source>{name} is empty.</source>
        <translation>{name} 파일이 비어 있습니다.</translation>
    </message>
    <message>
        <source>Let the download finish, or download the file again.</source>
        <translation>다운로드가 끝날 때까지 기다리거나 파일을 다시 다운로드하세요.</translation>
    </message>
    <message>
        <source>There is no file {name}.</source>
        <translation>{name} 파일이 없습니다.</translation>
    </message>
    <message>
        <source>Check the path.</source>
        <translation>경로를 확인하세요.</translation>
    </message>
    <message>
        <source>You are not allowed to read {name}.</source>
        <translation>{name} 파일을 읽을 권한이 없습니다.</translation>
    </message>
    <message>
        <source>Change the file&apos;s permissions, or copy it.</source>
        <translation>파일 권한을 바꾸거나 파일을 복사하세요.</translation>
    </message>
    <message>
        <source>{name} is a link that leads in a circle.</source>
        <translation>{name}: 자기 자신으로 되돌아오는 링크입니다.</translation>
    </message>
    <message>
        <source>Choose the file itself.</source>
        <translation>원본 파일을 선택하세요.</translation>
    </message>
    <message>
        <source>{name} cannot be read: {reason}.</source>
        <translation>{name} 파일을 읽을 수 없습니다: {reason}.</translation>
    </message>
    <message>
        <source>Check the disk.</source>
        <translation>디스크를 확인하세요.</translation>
    </message>
    <message>
        <source>{name} is damaged: {reason}.</source>
        <translation>{name} 파일이 손상되었습니다: {reason}.</translation>
    </message>
    <message>
        <source>Download or copy the file again.</source>
        <translation>파일을 다시 다운로드하거나 복사하세요.</translation>
    </message>
    <message>
        <source>{name} is incomplete: it has {size} bytes and needs at least {needed}.</source>
        <translation>{name} 파일이 완전하지 않습니다. {size}바이트이지만 {needed}바이트 이상이어야 합니다.</translation>
    </message>
    <message>
        <source>{name} {what}.</source>
        <translation>{name}: {what}.</translation>
    </message>
    <message>
        <source>Download it again; a login page may have answered instead.</source>
        <translation>다시 다운로드하세요. 모델 대신 로그인 페이지가 저장되었을 수 있습니다.</translation>
    </message>
    <message>
        <source>Fetch the file with git lfs pull, or download it.</source>
        <translation>git lfs pull로 파일을 가져오거나 다운로드하세요.</translation>
    </message>
    <message>
        <source>Choose a GGUF conversion of this model.</source>
        <translation>이 모델의 GGUF 변환 파일을 선택하세요.</translation>
    </message>
    <message>
        <source>Get a newer file of this model.</source>
        <translation>이 모델의 더 새로운 파일을 구하세요.</translation>
    </message>
    <message>
        <source>Get the little-endian file of this model.</source>
        <translation>이 모델의 리틀 엔디언 파일을 구하세요.</translation>
    </message>
    <message>
        <source>Update Tandem, or get a file of version 3.</source>
        <translation>Tandem을 업데이트하거나 버전 3 파일을 구하세요.</translation>
    </message>
    <message>
        <source>Choose the first part.</source>
        <translation>첫 번째 파트를 선택하세요.</translation>
    </message>
    <message>
        <source>Update Tandem if the file is newer than it, or download the file again.</source>
        <translation>파일이 더 최신이면 Tandem을 업데이트하고, 아니면 파일을 다시 다운로드하세요.</translation>
    </message>
    <message>
        <source>{name} contradicts itself: {reason}.</source>
        <translation>{name} 파일의 내용이 서로 맞지 않습니다: {reason}.</translation>
    </message>
    <message>
        <source>{name} is a drafter in another program&apos;s format ({architecture}).</source>
        <translation>{name}: 다른 프로그램 형식({architecture})의 드래프터입니다.</translation>
    </message>
    <message>
        <source>Get the drafter as a file of the architecture {architecture}.</source>
        <translation>아키텍처가 {architecture}인 드래프터 파일을 구하세요.</translation>
    </message>
    <message>
        <source>Choose the file with the model&apos;s weights.</source>
        <translation>모델의 가중치가 들어 있는 파일을 선택하세요.</translation>
    </message>
    <message>
        <source>{name} is a drafter, not a model to chat with.</source>
        <translation>{name}: 대화용 모델이 아니라 드래프터입니다.</translation>
    </message>
    <message>
        <source>Give it as the drafter, and the Gemma 4 model as the target.</source>
        <translation>이 파일을 드래프터로, Gemma 4 모델을 타깃으로 지정하세요.</translation>
    </message>
    <message>
        <source>{name} is a drafter of another method ({architecture}), not a model to chat with.</source>
        <translation>{name}: 대화용 모델이 아니라 다른 방식({architecture})의 드래프터입니다.</translation>
    </message>
    <message>
        <source>Choose the model itself as the target.</source>
        <translation>모델 파일을 타깃으로 선택하세요.</translation>
    </message>
    <message>
        <source>{name} is not a drafter: its architecture is {architecture}.</source>
        <translation>{name}: 드래프터가 아닙니다. 아키텍처가 {architecture}입니다.</translation>
    </message>
    <message>
        <source>Choose a file of the architecture {architecture}, or draft with the method draft-model.</source>
        <translation>아키텍처가 {architecture}인 파일을 선택하거나 draft-model 방식으로 드래프트하세요.</translation>
    </message>
    <message>
        <source>{drafter} does not fit {target} ({facts}).</source>
        <translation>{drafter} 드래프터가 {target} 타깃에 맞지 않습니다({facts}).</translation>
    </message>
    <message>
        <source>Choose the drafter that was made for this size of the model, or chat without a drafter.</source>
        <translation>이 크기의 모델용으로 만든 드래프터를 선택하거나 드래프터 없이 대화하세요.</translation>
    </message>
    <message>
        <source>Choose a small model with the same vocabulary, or draft with the method ngram.</source>
        <translation>어휘가 같은 작은 모델을 선택하거나 ngram 방식으로 드래프트하세요.</translation>
    </message>
    <message>
        <source>{name} cannot draft by itself: it works on the target&apos;s own state.</source>
        <translation>{name}: 타깃의 내부 상태로 작동하므로 단독으로는 드래프트할 수 없습니다.</translation>
    </message>
    <message>
        <source>Use it with the method mtp, or choose a whole small model.</source>
        <translation>mtp 방식으로 사용하거나 완전한 작은 모델을 선택하세요.</translation>
    </message>
    <message>
        <source>The demo pair&apos;s file {name} is missing.</source>
        <translation>데모 모델 쌍의 {name} 파일이 없습니다.</translation>
    </message>
    <message>
        <source>Install Tandem again.</source>
        <translation>Tandem을 다시 설치하세요.</translation>
    </message>
    <message>
        <source>is not a GGUF file</source>
        <translation>GGUF 파일이 아닙니다</translation>
    </message>
    <message>
        <source>is a web page, not a GGUF file</source>
        <translation>GGUF 파일이 아니라 웹 페이지입니다</translation>
    </message>
    <message>
        <source>is a Git LFS pointer, not the model itself</source>
        <translation>모델이 아니라 Git LFS 포인터입니다</translation>
    </message>
    <message>
        <source>is a safetensors file, not a GGUF file</source>
        <translation>GGUF 파일이 아니라 safetensors 파일입니다</translation>
    </message>
    <message>
        <source>has the old GGML format from before GGUF</source>
        <translation>GGUF 이전의 오래된 GGML 형식입니다</translation>
    </message>
    <message>
        <source>is a big-endian GGUF file</source>
        <translation>빅 엔디언 GGUF 파일입니다</translation>
    </message>
    <message>
        <source>is a GGUF file of version 1, which is too old</source>
        <translation>너무 오래된 버전 1의 GGUF 파일입니다</translation>
    </message>
    <message>
        <source>is a GGUF file of version {version}, which this engine does not know</source>
        <translation>이 엔진이 지원하지 않는 버전 {version}의 GGUF 파일입니다</translation>
    </message>
    <message>
        <source>is part {number} of a model in several files</source>
        <translation>여러 파일로 나뉜 모델의 {number}번째 파트입니다</translation>
    </message>
    <message>
        <source>does not say which architecture it has</source>
        <translation>아키텍처 정보가 없습니다</translation>
    </message>
    <message>
        <source>uses an old tensor format (type {type}) that the engine no longer reads</source>
        <translation>엔진이 더 이상 지원하지 않는 오래된 텐서 형식(유형 {type})을 사용합니다</translation>
    </message>
    <message>
        <source>holds the image and audio part of a model, not the model</source>
        <translation>모델이 아니라 모델의 이미지·오디오 부분입니다</translation>
    </message>
    <message>
        <source>is not a model but of the type {type}</source>
        <translation>모델이 아니라 {type} 유형의 파일입니다</translation>
    </message>
    <message>
        <source>holds no weights</source>
        <translation>가중치가 없습니다</translation>
    </message>
    <message>
        <source>its header would pass {limit} MiB</source>
        <translation>헤더가 {limit} MiB를 넘습니다</translation>
    </message>
    <message>
        <source>it lists more than {limit} strings</source>
        <translation>목록의 문자열이 {limit}개를 넘습니다</translation>
    </message>
    <message>
        <source>it has a text of more than {limit} MiB in a list</source>
        <translation>목록에 {limit} MiB를 넘는 텍스트가 있습니다</translation>
    </message>
    <message>
        <source>its header has more than {limit} MiB of text</source>
        <translation>헤더의 텍스트가 {limit} MiB를 넘습니다</translation>
    </message>
    <message>
        <source>the value of {key} has the unknown type {type}</source>
        <translation>{key} 값의 유형({type})을 알 수 없습니다</translation>
    </message>
    <message>
        <source>a key has the impossible length {length}</source>
        <translation>키 길이({length})가 올바르지 않습니다</translation>
    </message>
    <message>
        <source>a key is not text</source>
        <translation>키가 텍스트가 아닙니다</translation>
    </message>
    <message>
        <source>the key {key} occurs twice</source>
        <translation>{key} 키가 두 번 나옵니다</translation>
    </message>
    <message>
        <source>its alignment has the wrong type</source>
        <translation>정렬 값의 유형이 잘못되었습니다</translation>
    </message>
    <message>
        <source>its alignment is not a power of two</source>
        <translation>정렬 값이 2의 거듭제곱이 아닙니다</translation>
    </message>
    <message>
        <source>the tensor {tensor} has an impossible shape</source>
        <translation>{tensor} 텐서의 모양이 올바르지 않습니다</translation>
    </message>
    <message>
        <source>the tensor {tensor} has the type {type}, which this engine does not know</source>
        <translation>{tensor} 텐서의 유형({type})은 이 엔진에서 지원하지 않습니다</translation>
    </message>
    <message>
        <source>the rows of the tensor {tensor} do not fit its type {type}</source>
        <translation>{tensor} 텐서의 행이 유형({type})과 맞지 않습니다</translation>
    </message>
    <message>
        <source>a tensor&apos;s name has the impossible length {length}</source>
        <translation>텐서 이름의 길이({length})가 올바르지 않습니다</translation>
    </message>
    <message>
        <source>the tensor {tensor} occurs twice</source>
        <translation>{tensor} 텐서가 두 번 나옵니다</translation>
    </message>
    <message>
        <source>the tensor {tensor} has {count} dimensions</source>
        <translation>{tensor} 텐서의 차원이 {count}개입니다</translation>
    </message>
    <message>
        <source>the tensor {tensor} does not begin where the one before it ends</source>
        <translation>{tensor} 텐서의 시작 위치가 앞 텐서의 끝과 맞지 않습니다</translation>
    </message>
    <message>
        <source>the tensor {tensor} ends beyond any disk</source>
        <translation>{tensor} 텐서의 끝이 디스크 범위를 벗어납니다</translation>
    </message>
    <message>
        <source>it has the impossible GGUF version {version}</source>
        <translation>GGUF 버전({version})이 올바르지 않습니다</translation>
    </message>
    <message>
        <source>it claims to have {count} tensors</source>
        <translation>텐서가 {count}개라고 되어 있습니다</translation>
    </message>
    <message>
        <source>it claims to have {count} keys</source>
        <translation>키가 {count}개라고 되어 있습니다</translation>
    </message>
    <message>
        <source>its architecture is not a name</source>
        <translation>아키텍처 이름이 올바르지 않습니다</translation>
    </message>
    <message>
        <source>is far longer than what is in it</source>
        <translation>실제 내용보다 파일이 훨씬 깁니다</translation>
    </message>
    <message>
        <source>its number of layers is {value}</source>
        <translation>레이어 수가 {value}입니다</translation>
    </message>
    <message>
        <source>its number of drafting layers is {value}, of {layers}</source>
        <translation>전체 {layers}개 중 드래프트 레이어 수가 {value}입니다</translation>
    </message>
    <message>
        <source>too few layers have keys and values of their own</source>
        <translation>자체 키와 값을 가진 레이어가 너무 적습니다</translation>
    </message>
    <message>
        <source>it does not give the hidden size of its target (embedding_length_out)</source>
        <translation>타깃의 은닉 크기(embedding_length_out)가 없습니다</translation>
    </message>
    <message>
        <source>none of its layers is a sliding one</source>
        <translation>슬라이딩 레이어가 하나도 없습니다</translation>
    </message>
    <message>
        <source>{fact}: {one} in the target, {other} in the drafter</source>
        <translation>{fact}: 타깃 {one}, 드래프터 {other}</translation>
    </message>
    <message>
        <source>architecture of the target</source>
        <translation>타깃 아키텍처</translation>
    </message>
    <message>
        <source>made for {architecture}</source>
        <translation>{architecture}용</translation>
    </message>
    <message>
        <source>hidden size</source>
        <translation>은닉 크기</translation>
    </message>
    <message>
        <source>tokenizer</source>
        <translation>토크나이저</translation>
    </message>
    <message>
        <source>vocabulary size</source>
        <translation>어휘 크기</translation>
    </message>
    <message>
        <source>token list</source>
        <translation>토큰 목록</translation>
    </message>
    <message>
        <source>{digest} ({share} alike)</source>
        <translation>{digest}({share} 일치)</translation>
    </message>
    <message>
        <source>last two layers</source>
        <translation>마지막 두 레이어</translation>
    </message>
    <message>
        <source>head size of sliding layers</source>
        <translation>슬라이딩 레이어의 헤드 크기</translation>
    </message>
    <message>
        <source>head size of full layers</source>
        <translation>전체 어텐션 레이어의 헤드 크기</translation>
    </message>
    <message>
        <source>key-value heads of sliding layers</source>
        <translation>슬라이딩 레이어의 키-값 헤드 수</translation>
    </message>
    <message>
        <source>key-value heads of full layers</source>
        <translation>전체 어텐션 레이어의 키-값 헤드 수</translation>
    </message>
    <message>
        <source>not given</source>
        <translation>지정되지 않음</translation>
    </message>
    <message>
        <source>The chats in {file} were written by a newer Tandem.</source>
        <translation>{file}의 대화는 더 새로운 버전의 Tandem에서 저장한 것입니다.</translation>
    </message>
    <message>
        <source>Use the newer Tandem, or move that file elsewhere to begin with no chats.</source>
        <translation>더 새로운 Tandem을 사용하거나, 파일을 다른 곳으로 옮기고 빈 목록으로 시작하세요.</translation>
    </message>
    <message>
        <source>Another program is using the chats in {file}.</source>
        <translation>다른 프로그램이 {file}의 대화를 사용하고 있습니다.</translation>
    </message>
    <message>
        <source>Close the other Tandem window, then try again.</source>
        <translation>다른 Tandem 창을 닫고 다시 시도하세요.</translation>
    </message>
    <message>
        <source>The file with the chats, {file}, is damaged.</source>
        <translation>대화 파일({file})이 손상되었습니다.</translation>
    </message>
    <message>
        <source>Start Tandem again: it then keeps that file under another name and begins a new one.</source>
        <translation>Tandem을 다시 시작하세요. 기존 파일은 다른 이름으로 보관하고 새 파일을 만듭니다.</translation>
    </message>
    <message>
        <source>The file with the chats, {file}, is damaged and cannot be set aside.</source>
        <translation>대화 파일({file})이 손상되었고 따로 보관할 수도 없습니다.</translation>
    </message>
    <message>
        <source>Move that file to another folder yourself, then start Tandem again.</source>
        <translation>파일을 직접 다른 폴더로 옮긴 뒤 Tandem을 다시 시작하세요.</translation>
    </message>
    <message>
        <source>The chats in {file} could not be read or written.</source>
        <translation>{file}의 대화를 읽거나 쓸 수 없습니다.</translation>
    </message>
    <message>
        <source>Check that the disk has room and is in order, then try again.</source>
        <translation>디스크의 여유 공간과 상태를 확인한 뒤 다시 시도하세요.</translation>
    </message>
    <message>
        <source>Tandem may not write its chats to {file}.</source>
        <translation>{file}에 대화를 쓸 권한이 없습니다.</translation>
    </message>
    <message>
        <source>Check the permissions of that file and its folder.</source>
        <translation>파일과 폴더의 권한을 확인하세요.</translation>
    </message>
    <message>
        <source>The chats in {file} could not be brought to this version&apos;s form.</source>
        <translation>{file}의 대화를 이 버전의 형식으로 변환할 수 없습니다.</translation>
    </message>
    <message>
        <source>Use the Tandem that wrote them; they are unchanged.</source>
        <translation>대화를 저장한 버전의 Tandem을 사용하세요. 대화는 그대로 있습니다.</translation>
    </message>
    <message>
        <source>The disk with {folder} is full, so the chat cannot be saved.</source>
        <translation>{folder} 폴더가 있는 디스크가 가득 차서 대화를 저장할 수 없습니다.</translation>
    </message>
    <message>
        <source>Make room on that disk, then try again.</source>
        <translation>디스크 공간을 확보한 뒤 다시 시도하세요.</translation>
    </message>
    <message>
        <source>That chat or message is no longer there.</source>
        <translation>해당 대화나 메시지가 더 이상 없습니다.</translation>
    </message>
    <message>
        <source>Open another chat.</source>
        <translation>다른 대화를 여세요.</translation>
    </message>
    <message>
        <source>The message is too long to be saved.</source>
        <translation>메시지가 너무 길어 저장할 수 없습니다.</translation>
    </message>
    <message>
        <source>Send it in parts.</source>
        <translation>나누어 보내세요.</translation>
    </message>
    <message>
        <source>The chats are not open.</source>
        <translation>대화 파일이 열려 있지 않습니다.</translation>
    </message>
    <message>
        <source>Start Tandem again.</source>
        <translation>Tandem을 다시 시작하세요.</translation>
    </message>
    <message>
        <source>This message is not there any more.</source>
        <translation>이 메시지는 더 이상 없습니다.</translation>
    </message>
    <message>
        <source>Open the chat again.</source>
        <translation>대화를 다시 여세요.</translation>
    </message>
    <message>
        <source>{name} was written by a newer Tandem.</source>
        <translation>{name} 파일은 더 새로운 버전의 Tandem에서 만든 것입니다.</translation>
    </message>
    <message>
        <source>Use that Tandem to read it in.</source>
        <translation>그 버전의 Tandem에서 가져오세요.</translation>
    </message>
    <message>
        <source>{name} cannot be written to {folder}.</source>
        <translation>{folder} 폴더에 {name} 파일을 쓸 수 없습니다.</translation>
    </message>
    <message>
        <source>Choose another folder, or make room there and check that you may write to it.</source>
        <translation>다른 폴더를 선택하거나, 공간을 확보하고 쓰기 권한을 확인하세요.</translation>
    </message>
    <message>
        <source>{name} cannot be read.</source>
        <translation>{name} 파일을 읽을 수 없습니다.</translation>
    </message>
    <message>
        <source>Check that the file is there and that you may read it.</source>
        <translation>파일이 있는지, 읽을 권한이 있는지 확인하세요.</translation>
    </message>
    <message>
        <source>{name} is larger than {limit} MiB, which is more than Tandem reads in.</source>
        <translation>{name} 파일이 {limit} MiB보다 커서 가져올 수 없습니다.</translation>
    </message>
    <message>
        <source>Export the chats one by one, and read in those files.</source>
        <translation>대화를 하나씩 내보낸 뒤 그 파일들을 가져오세요.</translation>
    </message>
    <message>
        <source>{name} is no file of chats that Tandem has exported.</source>
        <translation>{name}: Tandem에서 내보낸 대화 파일이 아닙니다.</translation>
    </message>
    <message>
        <source>Choose a JSON file that was exported from Tandem.</source>
        <translation>Tandem에서 내보낸 JSON 파일을 선택하세요.</translation>
    </message>
    <message>
        <source>{name} holds more chats or messages than Tandem reads in at once.</source>
        <translation>{name} 파일에는 한 번에 가져올 수 있는 것보다 많은 대화나 메시지가 있습니다.</translation>
    </message>
    <message>
        <source>Export fewer chats at once, and read in those files.</source>
        <translation>한 번에 더 적은 수의 대화를 내보낸 뒤 그 파일들을 가져오세요.</translation>
    </message>
    <message>
        <source>Chat {number} in {name} is damaged, so nothing was read in.</source>
        <translation>{name} 파일의 {number}번째 대화가 손상되어 아무것도 가져오지 않았습니다.</translation>
    </message>
    <message>
        <source>Export the chats again where they come from.</source>
        <translation>원래 위치에서 대화를 다시 내보내세요.</translation>
    </message>
    <message>
        <source>The settings in {file} cannot be read.</source>
        <translation>{file}의 설정을 읽을 수 없습니다.</translation>
    </message>
    <message>
        <source>Check the permissions of that file.</source>
        <translation>파일 권한을 확인하세요.</translation>
    </message>
    <message>
        <source>The settings cannot be written to {folder}.</source>
        <translation>{folder} 폴더에 설정을 쓸 수 없습니다.</translation>
    </message>
    <message>
        <source>Make room on that disk, and check that you may write to that folder.</source>
        <translation>디스크 공간을 확보하고 폴더의 쓰기 권한을 확인하세요.</translation>
    </message>
    <message>
        <source>The settings in {file} are damaged and cannot be set aside.</source>
        <translation>{file}의 설정이 손상되었고 따로 보관할 수도 없습니다.</translation>
    </message>
    <message>
        <source>Remove or rename that file yourself, then start Tandem again.</source>
        <translation>파일을 직접 삭제하거나 이름을 바꾼 뒤 Tandem을 다시 시작하세요.</translation>
    </message>
    <message>
        <source>This setting cannot have that value.</source>
        <translation>이 설정에 쓸 수 없는 값입니다.</translation>
    </message>
    <message>
        <source>Choose another value.</source>
        <translation>다른 값을 선택하세요.</translation>
    </message>
    <message>
        <source>The folder with the logs cannot be read.</source>
        <translation>로그 폴더를 읽을 수 없습니다.</translation>
    </message>
    <message>
        <source>Check its permissions.</source>
        <translation>폴더 권한을 확인하세요.</translation>
    </message>
    <message>
        <source>The logs cannot be saved there: {reason}.</source>
        <translation>로그를 그곳에 저장할 수 없습니다: {reason}.</translation>
    </message>
    <message>
        <source>Choose another folder, or make room there.</source>
        <translation>다른 폴더를 선택하거나 공간을 확보하세요.</translation>
    </message>
    <message>
        <source>Tandem&apos;s own files are not where they should be.</source>
        <translation>Tandem의 파일이 제자리에 없습니다.</translation>
    </message>
    <message>
        <source>Tandem cannot make its folder {name} in {folder}.</source>
        <translation>{folder} 폴더 안에 Tandem의 {name} 폴더를 만들 수 없습니다.</translation>
    </message>
    <message>
        <source>Make room, or set {variable} to a folder that you can write to.</source>
        <translation>공간을 확보하거나, {variable} 변수를 쓰기 가능한 폴더로 설정하세요.</translation>
    </message>
    <message>
        <source>Tandem&apos;s icon {name} is missing.</source>
        <translation>Tandem의 {name} 아이콘이 없습니다.</translation>
    </message>
    <message>
        <source>A theme of Tandem&apos;s cannot be read.</source>
        <translation>Tandem의 테마를 읽을 수 없습니다.</translation>
    </message>
    <message>
        <source>Something went wrong inside Tandem.</source>
        <translation>Tandem 내부에서 문제가 발생했습니다.</translation>
    </message>
    <message>
        <source>No model file is chosen.</source>
        <translation>모델 파일을 선택하지 않았습니다.</translation>
    </message>
    <message>
        <source>Choose one on the page Models.</source>
        <translation>‘모델’ 페이지에서 선택하세요.</translation>
    </message>
    <message>
        <source>This pair has no drafter.</source>
        <translation>이 모델 쌍에는 드래프터가 없습니다.</translation>
    </message>
    <message>
        <source>Choose a drafter that belongs to the model.</source>
        <translation>이 모델에 맞는 드래프터를 선택하세요.</translation>
    </message>
    <message>
        <source>Hardly any draft is accepted, so the drafter costs more than it gives.</source>
        <translation>드래프트가 거의 수락되지 않아 드래프터를 쓰는 것이 오히려 느립니다.</translation>
    </message>
    <message>
        <source>The drafter is loaded, but no draft came from it.</source>
        <translation>드래프터를 불러왔지만 드래프트가 나오지 않습니다.</translation>
    </message>
    <message>
        <source>Load the pair again, or choose another drafter.</source>
        <translation>모델 쌍을 다시 불러오거나 다른 드래프터를 선택하세요.</translation>
    </message>
    <message>
        <source>{key} is a list of lists</source>
        <translation>{key} 값이 중첩된 목록입니다</translation>
    </message>
    <message>
        <source>{key} is a list of the unknown type {type}</source>
        <translation>{key} 목록의 유형({type})을 알 수 없습니다</translation>
    </message>
    <message>
        <source>The file with the chats, {file}, was replaced while Tandem was open.</source>
        <translation>Tandem이 열려 있는 동안 대화 파일 {file} 항목이 다른 파일로 바뀌었습니다.</translation>
    </message>
    <message>
        <source>Export what you want to keep, then start Tandem again.</source>
        <translation>보관할 대화를 내보낸 다음 Tandem을 다시 시작하세요.</translation>
    </message>
    <message>
        <source>Turn it off, lower the temperature, or choose a drafter made for this model.</source>
        <translation>드래프터를 끄거나, 온도를 낮추거나, 이 모델에 맞는 드래프터를 선택하세요.</translation>
    </message>
    <message>
        <source>Only its name ends in .gguf; its content is something else. Get the file again, or choose another.</source>
        <translation>이름만 .gguf로 끝나고 내용은 다른 형식입니다. 파일을 다시 받거나 다른 파일을 선택하세요.</translation>
    </message>
    <message>
        <source>{file} on the Hub is not the file that Tandem knows: {found} there, {pinned} here.</source>
        <translation>허브에 있는 {file} 파일이 Tandem이 알고 있는 파일과 다릅니다(허브: {found}, Tandem: {pinned}).</translation>
    </message>
    <message>
        <source>Update Tandem, or choose the other source of this model.</source>
        <translation>Tandem을 업데이트하거나 이 모델의 다른 출처를 선택하세요.</translation>
    </message>
    <message>
        <source>{host} has had too many requests from here and asks to wait for {wait}.</source>
        <translation>요청이 너무 많아 {host}에서 {wait} 기다려 달라고 합니다.</translation>
    </message>
    <message>
        <source>Wait, then try again; signing in to the Hub raises the limit.</source>
        <translation>기다린 뒤 다시 시도하세요. 허브에 로그인하면 요청 한도가 늘어납니다.</translation>
    </message>
    <message>
        <source>{host} gives no sha256 for {file}, so that it cannot be checked.</source>
        <translation>{host}에 {file} 파일의 sha256 값이 없어 파일을 확인할 수 없습니다.</translation>
    </message>
    <message>
        <source>{repository} at {host} has no {file}.</source>
        <translation>{host}의 {repository} 저장소에 {file} 파일이 없습니다.</translation>
    </message>
    <message>
        <source>The certificate of {host} is not trusted by this system.</source>
        <translation>이 시스템에서 {host} 인증서를 신뢰하지 않습니다.</translation>
    </message>
    <message>
        <source>Check this computer&apos;s clock; a proxy that inspects traffic needs its certificate in the system&apos;s store.</source>
        <translation>이 컴퓨터의 시계가 맞는지 확인하세요. 통신 내용을 검사하는 프록시를 쓴다면 그 인증서가 시스템 인증서 저장소에 있어야 합니다.</translation>
    </message>
    <message>
        <source>No secure connection to {host} could be made.</source>
        <translation>{host}에 보안 연결을 할 수 없습니다.</translation>
    </message>
    <message>
        <source>Check the Hub address and the proxy in Settings; a network that wants a sign-in can be the cause too.</source>
        <translation>설정에서 허브 주소와 프록시를 확인하세요. 로그인이 필요한 네트워크여서 그럴 수도 있습니다.</translation>
    </message>
    <message>
        <source>The proxy {proxy}, through which {host} is reached, does not answer.</source>
        <translation>{host}에 연결할 때 쓰는 프록시({proxy})가 응답하지 않습니다.</translation>
    </message>
    <message>
        <source>Check the proxy in Settings and the variables HTTPS_PROXY and ALL_PROXY.</source>
        <translation>설정의 프록시와 환경 변수 HTTPS_PROXY, ALL_PROXY를 확인하세요.</translation>
    </message>
    <message>
        <source>The proxy {proxy} cannot reach {host}.</source>
        <translation>프록시({proxy})가 {host}에 연결할 수 없습니다.</translation>
    </message>
    <message>
        <source>The proxy {proxy} asks for a name and a password.</source>
        <translation>프록시({proxy})에 사용자 이름과 비밀번호가 필요합니다.</translation>
    </message>
    <message>
        <source>Give the proxy in Settings as http://name:password@host:port.</source>
        <translation>설정에 프록시를 http://name:password@host:port 형식으로 입력하세요.</translation>
    </message>
    <message>
        <source>The proxy {proxy} does not let anything through to {host}.</source>
        <translation>프록시({proxy})가 {host} 연결을 허용하지 않습니다.</translation>
    </message>
    <message>
        <source>Check the proxy in Settings, or ask who runs it to allow this host.</source>
        <translation>설정에서 프록시를 확인하거나, 프록시 관리자에게 이 호스트를 허용해 달라고 요청하세요.</translation>
    </message>
    <message>
        <source>The proxy {proxy} speaks SOCKS, which Tandem does not.</source>
        <translation>프록시({proxy})는 SOCKS 방식이며 Tandem에서 지원하지 않습니다.</translation>
    </message>
    <message>
        <source>Give an HTTP proxy as http://host:port in Settings, or none to go without.</source>
        <translation>설정에 HTTP 프록시를 http://host:port 형식으로 입력하세요. 프록시 없이 연결하려면 ‘없음’을 선택하세요.</translation>
    </message>
    <message>
        <source>The proxy {proxy} is no address of a proxy.</source>
        <translation>올바른 프록시 주소가 아닙니다: {proxy}.</translation>
    </message>
    <message>
        <source>Give it as http://host:port in Settings, or none to go without.</source>
        <translation>설정에 http://host:port 형식으로 입력하세요. 프록시 없이 연결하려면 ‘없음’을 선택하세요.</translation>
    </message>
    <message>
        <source>{host} did not answer in time.</source>
        <translation>{host}에서 제때 응답하지 않았습니다.</translation>
    </message>
    <message>
        <source>The address of {host} was not found.</source>
        <translation>{host} 주소를 찾을 수 없습니다.</translation>
    </message>
    <message>
        <source>{host} cannot be reached.</source>
        <translation>{host}에 연결할 수 없습니다.</translation>
    </message>
    <message>
        <source>{host} leads from one address to the next without end.</source>
        <translation>{host}에 연결하면 다른 주소로 끝없이 넘어갑니다.</translation>
    </message>
    <message>
        <source>The connection to {host} broke off.</source>
        <translation>{host} 연결이 끊겼습니다.</translation>
    </message>
    <message>
        <source>Check the internet connection; where the Hub is blocked, set a mirror or a proxy in Settings.</source>
        <translation>인터넷 연결을 확인하세요. 허브가 차단된 곳이라면 설정에서 미러나 프록시를 지정하세요.</translation>
    </message>
    <message>
        <source>Try again; what came in so far is kept.</source>
        <translation>다시 시도하세요. 지금까지 받은 내용은 그대로 있습니다.</translation>
    </message>
    <message>
        <source>Choose the other source of this model, or update Tandem.</source>
        <translation>이 모델의 다른 출처를 선택하거나 Tandem을 업데이트하세요.</translation>
    </message>
    <message>
        <source>Open a web browser and sign in to this network, or check the Hub address in Settings; then try again.</source>
        <translation>웹 브라우저를 열어 이 네트워크에 로그인하거나 설정에서 허브 주소를 확인한 뒤 다시 시도하세요.</translation>
    </message>
    <message>
        <source>Sign in with a token in Settings, or choose the other source of this model.</source>
        <translation>설정에서 로그인 토큰을 입력하거나 이 모델의 다른 출처를 선택하세요.</translation>
    </message>
    <message>
        <source>Offline mode is on, so {host} was not asked.</source>
        <translation>오프라인 모드가 켜져 있어 {host}에 연결하지 않았습니다.</translation>
    </message>
    <message>
        <source>Unset {variable} and start Tandem again, or import the files from this computer.</source>
        <translation>환경 변수 {variable} 설정을 해제하고 Tandem을 다시 시작하거나, 이 컴퓨터에 있는 파일을 가져오세요.</translation>
    </message>
    <message>
        <source>What answered as {host} is not the Hub but some other page.</source>
        <translation>{host} 주소에서 허브가 아닌 다른 페이지가 응답했습니다.</translation>
    </message>
    <message>
        <source>The pinned revision of {thing} is no longer at {host}.</source>
        <translation>Tandem이 사용하는 {thing} 버전이 {host}에 더 이상 없습니다.</translation>
    </message>
    <message>
        <source>{thing} is no longer at {host}.</source>
        <translation>{host}에 {thing} 항목이 더 이상 없습니다.</translation>
    </message>
    <message>
        <source>{host} has disabled {thing}.</source>
        <translation>{host}에서 {thing} 항목의 사용을 막았습니다.</translation>
    </message>
    <message>
        <source>{host} has no {thing}.</source>
        <translation>{host}에 {thing} 항목이 없습니다.</translation>
    </message>
    <message>
        <source>{host} answered with error {number}.</source>
        <translation>{host}에서 오류 {number}번으로 응답했습니다.</translation>
    </message>
    <message>
        <source>{host} answered with status {number}, which makes no sense here.</source>
        <translation>{host}에서 예상하지 못한 상태 코드 {number}번으로 응답했습니다.</translation>
    </message>
    <message>
        <source>{host} does not accept your token for {thing}.</source>
        <translation>{host}에서 {thing} 항목에 대한 로그인 토큰을 받아들이지 않습니다.</translation>
    </message>
    <message>
        <source>Give a new token in Settings, or remove the old one: most models need none.</source>
        <translation>설정에서 새 로그인 토큰을 입력하거나 기존 토큰을 제거하세요. 대부분의 모델에는 토큰이 필요 없습니다.</translation>
    </message>
    <message>
        <source>{host} shows no {thing} to somebody who is not signed in; it is private, or no longer there.</source>
        <translation>로그인하지 않으면 {host}에서 {thing} 항목을 볼 수 없습니다. 비공개이거나 더 이상 없는 항목입니다.</translation>
    </message>
    <message>
        <source>{host} does not give {thing} to your account.</source>
        <translation>이 계정으로는 {host}에서 {thing} 항목을 받을 수 없습니다.</translation>
    </message>
    <message>
        <source>Ask for access on its page at {address}, then try again.</source>
        <translation>{address} 페이지에서 접근 권한을 요청한 뒤 다시 시도하세요.</translation>
    </message>
    <message>
        <source>{host} gives {thing} only to people who asked for access.</source>
        <translation>{host}에서 {thing} 항목을 받으려면 접근 권한을 요청해야 합니다.</translation>
    </message>
    <message>
        <source>Ask for access on its page at {address}, then sign in with a token in Settings.</source>
        <translation>{address} 페이지에서 접근 권한을 요청한 뒤 설정에서 로그인 토큰을 입력하세요.</translation>
    </message>
    <message>
        <source>{host} sends {file} compressed, which it was asked not to do.</source>
        <translation>압축하지 말라고 요청했지만 {host}에서 {file} 파일을 압축해서 보냅니다.</translation>
    </message>
    <message>
        <source>{host} cannot go on with {file} where it stopped.</source>
        <translation>{host}에서는 {file} 파일을 중단된 곳부터 이어받을 수 없습니다.</translation>
    </message>
    <message>
        <source>{host} sends other bytes of {file} than those it was asked for.</source>
        <translation>{host}에서 {file} 파일의 요청한 부분이 아닌 다른 부분을 보냅니다.</translation>
    </message>
    <message>
        <source>{host} sends another number of bytes of {file} than it was asked for.</source>
        <translation>{host}에서 {file} 파일을 요청한 크기와 다르게 보냅니다.</translation>
    </message>
    <message>
        <source>{file} changes at {host} while it is downloaded.</source>
        <translation>다운로드하는 동안 {host}에 있는 {file} 파일이 바뀝니다.</translation>
    </message>
    <message>
        <source>Nothing came from {host} for {number} seconds.</source>
        <translation>{number}초 동안 {host}에서 아무것도 오지 않았습니다.</translation>
    </message>
    <message>
        <source>The address of the Hub, {address}, is no web address.</source>
        <translation>허브 주소가 올바른 웹 주소가 아닙니다: {address}.</translation>
    </message>
    <message>
        <source>Give it as https://host, with a path behind it if the mirror has one.</source>
        <translation>https://host 형식으로 입력하고, 미러에 경로가 있으면 뒤에 붙이세요.</translation>
    </message>
    <message>
        <source>The address of the Hub has a name or a password in it.</source>
        <translation>허브 주소에 사용자 이름이나 비밀번호가 들어 있습니다.</translation>
    </message>
    <message>
        <source>Leave them out, and give a token instead.</source>
        <translation>주소에서 빼고 대신 로그인 토큰을 입력하세요.</translation>
    </message>
    <message>
        <source>This system has no keyring that Tandem can use.</source>
        <translation>이 시스템에는 Tandem이 사용할 수 있는 키링(암호 저장소)이 없습니다.</translation>
    </message>
    <message>
        <source>Set HF_TOKEN, or sign in with the command hf auth login; Tandem finds both.</source>
        <translation>환경 변수 HF_TOKEN을 설정하거나 hf auth login 명령으로 로그인하세요. 둘 다 Tandem이 알아서 찾습니다.</translation>
    </message>
    <message>
        <source>This is no token of the Hub.</source>
        <translation>허브의 로그인 토큰이 아닙니다.</translation>
    </message>
    <message>
        <source>Copy it again from the access tokens in your account&apos;s settings there.</source>
        <translation>허브의 계정 설정에 있는 액세스 토큰(Access Tokens)에서 다시 복사하세요.</translation>
    </message>
    <message>
        <source>Tandem&apos;s list of models is damaged.</source>
        <translation>Tandem의 모델 목록이 손상되었습니다.</translation>
    </message>
    <message>
        <source>There is no model {key} in Tandem&apos;s list.</source>
        <translation>Tandem의 목록에 {key} 모델이 없습니다.</translation>
    </message>
    <message>
        <source>Choose one of the page Models.</source>
        <translation>‘모델’ 페이지에서 선택하세요.</translation>
    </message>
    <message>
        <source>The disk of {folder} is full.</source>
        <translation>{folder} 폴더가 있는 디스크가 가득 찼습니다.</translation>
    </message>
    <message>
        <source>Make room on that disk, then go on.</source>
        <translation>디스크 공간을 확보한 뒤 계속하세요.</translation>
    </message>
    <message>
        <source>Make room on that disk, or choose a model folder on another one in the settings.</source>
        <translation>디스크 공간을 확보하거나 설정에서 모델 폴더를 다른 디스크로 바꾸세요.</translation>
    </message>
    <message>
        <source>Tandem may not write to {folder}.</source>
        <translation>{folder} 폴더에 쓸 권한이 없습니다.</translation>
    </message>
    <message>
        <source>Choose another model folder in the settings, or change this one&apos;s permissions.</source>
        <translation>설정에서 다른 모델 폴더를 선택하거나 이 폴더의 권한을 바꾸세요.</translation>
    </message>
    <message>
        <source>The disk of {folder} cannot hold files as large as this one.</source>
        <translation>{folder} 폴더가 있는 디스크에는 이렇게 큰 파일을 저장할 수 없습니다.</translation>
    </message>
    <message>
        <source>Choose a model folder on another disk in the settings.</source>
        <translation>설정에서 모델 폴더를 다른 디스크로 바꾸세요.</translation>
    </message>
    <message>
        <source>The folder {folder} is not there.</source>
        <translation>{folder} 폴더가 없습니다.</translation>
    </message>
    <message>
        <source>Connect its disk, or choose another model folder in the settings.</source>
        <translation>폴더가 있던 디스크를 연결하거나 설정에서 다른 모델 폴더를 선택하세요.</translation>
    </message>
    <message>
        <source>{folder} cannot be read or written: {reason}.</source>
        <translation>{folder} 폴더를 읽거나 쓸 수 없습니다: {reason}.</translation>
    </message>
    <message>
        <source>Another program is changing the models in {folder}.</source>
        <translation>다른 프로그램이 {folder} 폴더의 모델을 변경하고 있습니다.</translation>
    </message>
    <message>
        <source>Wait for it to finish, then try again.</source>
        <translation>끝날 때까지 기다린 뒤 다시 시도하세요.</translation>
    </message>
    <message>
        <source>{name} is being written by another program.</source>
        <translation>다른 프로그램이 {name} 파일에 쓰고 있습니다.</translation>
    </message>
    <message>
        <source>Wait for it to finish.</source>
        <translation>끝날 때까지 기다리세요.</translation>
    </message>
    <message>
        <source>{name} is being downloaded.</source>
        <translation>{name} 파일을 다운로드하는 중입니다.</translation>
    </message>
    <message>
        <source>{name} is being downloaded by another Tandem.</source>
        <translation>다른 Tandem에서 {name} 파일을 다운로드하는 중입니다.</translation>
    </message>
    <message>
        <source>Wait until it is done there, or pause it there and resume it here.</source>
        <translation>그곳에서 끝날 때까지 기다리거나, 그곳에서 일시 중지하고 여기에서 이어받으세요.</translation>
    </message>
    <message>
        <source>{name} is not a Gemma 4 model: its architecture is {architecture}.</source>
        <translation>{name}: Gemma 4 모델이 아닙니다. 아키텍처가 {architecture}입니다.</translation>
    </message>
    <message>
        <source>Choose a Gemma 4 model.</source>
        <translation>Gemma 4 모델을 선택하세요.</translation>
    </message>
    <message>
        <source>Pause the download, then move the folder.</source>
        <translation>다운로드를 일시 중지한 뒤 폴더를 옮기세요.</translation>
    </message>
    <message>
        <source>There is another file named {name} in {folder}.</source>
        <translation>{folder} 폴더에 이름이 같은 다른 {name} 파일이 있습니다.</translation>
    </message>
    <message>
        <source>Move or remove that file, or choose another folder.</source>
        <translation>그 파일을 옮기거나 제거하거나, 다른 폴더를 선택하세요.</translation>
    </message>
    <message>
        <source>{folder} lies in the model folder that is to be moved.</source>
        <translation>{folder} 폴더는 옮기려는 모델 폴더 안에 있습니다.</translation>
    </message>
    <message>
        <source>Choose a folder outside of it.</source>
        <translation>모델 폴더 밖에 있는 폴더를 선택하세요.</translation>
    </message>
    <message>
        <source>{name} has {size} bytes and should have {expected}.</source>
        <translation>{name} 파일의 크기가 {size}바이트입니다. {expected}바이트여야 합니다.</translation>
    </message>
    <message>
        <source>Start its download again.</source>
        <translation>다운로드를 다시 시작하세요.</translation>
    </message>
    <message>
        <source>{name} is not the file it should be: its sha256 is {found}…, not {expected}….</source>
        <translation>{name} 파일의 내용이 올바르지 않습니다. sha256 값이 {expected}… 대신 {found}…입니다.</translation>
    </message>
    <message>
        <source>Start its download again; this one was set aside.</source>
        <translation>다운로드를 다시 시작하세요. 이 파일은 따로 보관했습니다.</translation>
    </message>
    <message>
        <source>Import it again from where it came; this one was set aside.</source>
        <translation>원래 위치에서 다시 가져오세요. 이 파일은 따로 보관했습니다.</translation>
    </message>
    <message>
        <source>{name} was another file than it should be; the right one has taken its place.</source>
        <translation>{name} 파일의 내용이 올바르지 않아 올바른 파일로 바꾸었습니다.</translation>
    </message>
    <message>
        <source>Remove the set-aside file if you do not need it.</source>
        <translation>따로 보관한 파일이 필요 없으면 제거하세요.</translation>
    </message>
    <message>
        <source>{name} is no longer in {folder}.</source>
        <translation>{folder} 폴더에 {name} 파일이 더 이상 없습니다.</translation>
    </message>
    <message>
        <source>Connect its disk, or get the file again.</source>
        <translation>파일이 있던 디스크를 연결하거나 파일을 다시 받으세요.</translation>
    </message>
    <message>
        <source>{name} was found on the disk and has not been verified yet.</source>
        <translation>디스크에서 찾은 {name} 파일을 아직 검증하지 않았습니다.</translation>
    </message>
    <message>
        <source>Verify the file.</source>
        <translation>파일을 검증하세요.</translation>
    </message>
    <message>
        <source>{name} has changed since it was checked.</source>
        <translation>확인한 뒤에 {name} 파일이 바뀌었습니다.</translation>
    </message>
    <message>
        <source>Verify the file: if it is still the right one, it can be used again.</source>
        <translation>파일을 검증하세요. 여전히 올바른 파일이면 다시 사용할 수 있습니다.</translation>
    </message>
    <message>
        <source>Remove it from the list, then get it again.</source>
        <translation>목록에서 제거한 뒤 파일을 다시 받으세요.</translation>
    </message>
    <message>
        <source>{name} was written to while it was read.</source>
        <translation>{name} 파일을 읽는 동안 내용이 바뀌었습니다.</translation>
    </message>
    <message>
        <source>Import it when nothing writes to it any more.</source>
        <translation>다른 프로그램이 파일에 쓰지 않을 때 가져오세요.</translation>
    </message>
    <message>
        <source>Verify it again when nothing writes to it.</source>
        <translation>다른 프로그램이 파일에 쓰지 않을 때 다시 검증하세요.</translation>
    </message>
    <message>
        <source>{name} has changed since it was looked at.</source>
        <translation>살펴본 뒤에 {name} 파일이 바뀌었습니다.</translation>
    </message>
    <message>
        <source>Import it again.</source>
        <translation>다시 가져오세요.</translation>
    </message>
    <message>
        <source>{name} is not what it was when it was checked.</source>
        <translation>{name} 파일이 확인했을 때와 다릅니다.</translation>
    </message>
    <message>
        <source>Verify it, or get it again.</source>
        <translation>파일을 검증하거나 다시 받으세요.</translation>
    </message>
    <message>
        <source>The copy of {name} is not what was written: its disk may be failing.</source>
        <translation>{name} 복사본의 내용이 원본과 다릅니다. 디스크가 고장 났을 수 있습니다.</translation>
    </message>
    <message>
        <source>Check that disk, or choose another one.</source>
        <translation>그 디스크를 점검하거나 다른 디스크를 선택하세요.</translation>
    </message>
    <message>
        <source>Its licence is not known: see to it yourself that you may use it.</source>
        <translation>라이선스를 알 수 없습니다. 사용해도 되는지 직접 확인하세요.</translation>
    </message>
    <message>
        <source>Nothing in it says that it was trained for its quantisation (QAT).</source>
        <translation>양자화에 맞춰 학습했다는(QAT) 정보가 파일에 없습니다.</translation>
    </message>
    <message>
        <source>It is not a Gemma 4 model: Tandem can chat with it, without a drafter of its own.</source>
        <translation>Gemma 4 모델이 아닙니다. 대화할 수는 있지만 전용 드래프터는 없습니다.</translation>
    </message>
    <message>
        <source>It is on another drive, where no hard link is possible: it is copied instead.</source>
        <translation>다른 드라이브에 있어 링크로 연결할 수 없으므로 복사 방식으로 가져옵니다.</translation>
    </message>
    <message>
        <source>The two files are given the wrong way round: the first is the drafter, the second the target.</source>
        <translation>두 파일의 순서가 바뀌었습니다. 첫 번째가 드래프터이고 두 번째가 타깃입니다.</translation>
    </message>
    <message>
        <source>The target says that it was trained for its quantisation (QAT), the drafter does not: a drafter of another training may get fewer of its tokens accepted.</source>
        <translation>타깃에는 양자화에 맞춰 학습했다는(QAT) 정보가 있지만 드래프터에는 없습니다. 다르게 학습한 드래프터의 토큰은 덜 수락될 수 있습니다.</translation>
    </message>
    <message>
        <source>The drafter says that it was trained for QAT, the target does not: a drafter of another training may get fewer of its tokens accepted.</source>
        <translation>드래프터에는 양자화에 맞춰 학습했다는(QAT) 정보가 있지만 타깃에는 없습니다. 다르게 학습한 드래프터의 토큰은 덜 수락될 수 있습니다.</translation>
    </message>
    <message>
        <source>a while</source>
        <translation>잠시</translation>
    </message>
    <message>
        <source>{seconds} seconds</source>
        <translation>{seconds}초</translation>
    </message>
    <message>
        <source>The disk of {folder} has {free} free, and {needed} are needed.</source>
        <translation>{folder} 폴더가 있는 디스크에 {free} 남아 있지만 {needed} 필요합니다.</translation>
    </message>
    <message>
        <source>In {folder}, something else has the name {name}.</source>
        <translation>{folder} 폴더에 {name} 이름을 쓰는 다른 항목이 있습니다.</translation>
    </message>
    <message>
        <source>Move it out of the way, then try again.</source>
        <translation>그 항목을 다른 곳으로 옮긴 뒤 다시 시도하세요.</translation>
    </message>
    <message>
        <source>{folder} is a folder of the old model folder, by another name.</source>
        <translation>{folder} 폴더는 기존 모델 폴더 안의 폴더를 다른 이름으로 가리킵니다.</translation>
    </message>
    <message>
        <source>{name} in the model folder is not finished.</source>
        <translation>모델 폴더의 {name} 파일이 아직 완성되지 않았습니다.</translation>
    </message>
    <message>
        <source>{name} is not the file it was when it was added. It was left where it is and is not used.</source>
        <translation>{name} 파일이 추가했을 때와 다릅니다. 파일은 그대로 두었으며 사용하지 않습니다.</translation>
    </message>
    <message>
        <source>Start its download again, or choose the other source of this model.</source>
        <translation>다시 다운로드하거나 이 모델의 다른 출처를 선택하세요.</translation>
    </message>
    <message>
        <source>There is nothing to compare {name} with: its sha256 is not known.</source>
        <translation>{name} 파일은 sha256 값을 알 수 없어 비교할 대상이 없습니다.</translation>
    </message>
    <message>
        <source>It can be used; remove it and download it again to be sure of it.</source>
        <translation>사용할 수는 있습니다. 확실히 하려면 제거한 뒤 다시 다운로드하세요.</translation>
    </message>
</context>
<context>
    <name>Figures</name>
    <message>
        <source>prefill tok/s</source>
        <translation>프리필 tok/s</translation>
    </message>
    <message>
        <source>prompt tokens really processed / prefill time (what an earlier turn left in the cache is not counted)</source>
        <translation>실제로 처리한 프롬프트 토큰 / 프리필 시간(이전 대화에서 캐시에 남은 토큰은 제외)</translation>
    </message>
    <message>
        <source>decode tok/s</source>
        <translation>디코드 tok/s</translation>
    </message>
    <message>
        <source>(generated − 1) / time from the first to the last token</source>
        <translation>(생성한 토큰 − 1) / 첫 토큰부터 마지막 토큰까지의 시간</translation>
    </message>
    <message>
        <source>time to first token</source>
        <translation>첫 토큰까지의 시간</translation>
    </message>
    <message>
        <source>from sending the message to the first token</source>
        <translation>메시지를 보낸 때부터 첫 토큰까지</translation>
    </message>
    <message>
        <source>pass</source>
        <translation>패스</translation>
    </message>
    <message>
        <source>one run of the target that gave tokens: the last one over the prompt, which gives the first token, then one verify pass after the other</source>
        <translation>토큰을 낸 타깃의 실행 한 번. 첫 토큰을 내는 마지막 프롬프트 실행이 첫 패스이고, 그다음은 검증 패스 하나하나입니다</translation>
    </message>
    <message>
        <source>tokens per pass</source>
        <translation>패스당 토큰</translation>
    </message>
    <message>
        <source>generated / passes: 1 without drafting</source>
        <translation>생성한 토큰 / 패스. 드래프트하지 않으면 1</translation>
    </message>
    <message>
        <source>acceptance rate</source>
        <translation>수락률</translation>
    </message>
    <message>
        <source>accepted / verified drafts</source>
        <translation>수락된 드래프트 / 검증한 드래프트</translation>
    </message>
    <message>
        <source>acceptance at position i</source>
        <translation>위치 i의 수락률</translation>
    </message>
    <message>
        <source>passes in which draft i was accepted / passes that had a draft i</source>
        <translation>드래프트 i가 수락된 패스 / 드래프트 i가 있었던 패스</translation>
    </message>
    <message>
        <source>gain</source>
        <translation>속도 향상</translation>
    </message>
    <message>
        <source>decode tok/s with / without drafting, same prompt, same length, paired</source>
        <translation>드래프트할 때와 하지 않을 때의 디코드 tok/s 비율(같은 프롬프트, 같은 길이, 짝지어 측정)</translation>
    </message>
    <message>
        <source>{rate} tok/s</source>
        <translation>{rate} tok/s</translation>
    </message>
    <message>
        <source>{number} tokens per pass</source>
        <translation>패스당 {number}토큰</translation>
    </message>
    <message>
        <source>{share} accepted</source>
        <translation>{share} 수락</translation>
    </message>
    <message>
        <source>first token {time}</source>
        <translation>첫 토큰 {time}</translation>
    </message>
    <message>
        <source>thought</source>
        <translation>생각</translation>
    </message>
    <message>
        <source>answer</source>
        <translation>답변</translation>
    </message>
    <message>
        <source>draft length {length}</source>
        <translation>드래프트 길이 {length}</translation>
    </message>
    <message>
        <source>seed {seed}</source>
        <translation>시드 {seed}</translation>
    </message>
    <message>
        <source>tokens</source>
        <translation>토큰</translation>
    </message>
    <message numerus="yes">
        <source>%n pass(es)</source>
        <translation>
            <numerusform>%n패스</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%n토큰</numerusform>
        </translation>
    </message>
    <message>
        <source>The rates of an answer as short as this vary much from one run to the next.</source>
        <translation>이렇게 짧은 답변의 속도와 비율은 실행할 때마다 크게 달라집니다.</translation>
    </message>
    <message>
        <source>drafter off</source>
        <translation>드래프터 꺼짐</translation>
    </message>
    <message>
        <source>decoded in {time}</source>
        <translation>디코드에 {time}</translation>
    </message>
    <message>
        <source>{number} of them reused from the KV cache</source>
        <translation>그중 {number}토큰은 KV 캐시에서 재사용</translation>
    </message>
    <message>
        <source>generated</source>
        <translation>생성</translation>
    </message>
    <message>
        <source>prompt</source>
        <translation>프롬프트</translation>
    </message>
</context>
<context>
    <name>FileField</name>
    <message>
        <source>Browse…</source>
        <translation>찾아보기…</translation>
    </message>
    <message>
        <source>Model files (*.gguf)</source>
        <translation>모델 파일 (*.gguf)</translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation>모든 파일 (*)</translation>
    </message>
</context>
<context>
    <name>FileRow</name>
    <message>
        <source>Show in folder</source>
        <translation>폴더에서 보기</translation>
    </message>
    <message>
        <source>Remove…</source>
        <translation>제거…</translation>
    </message>
    <message>
        <source>Remove {name}?</source>
        <translation>{name} 파일을 제거할까요?</translation>
    </message>
    <message>
        <source>Remove</source>
        <translation>제거</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>그대로 두기</translation>
    </message>
    <message>
        <source>Use…</source>
        <translation>사용…</translation>
    </message>
    <message>
        <source>Use {name}</source>
        <translation>{name} 사용</translation>
    </message>
    <message>
        <source>More for {name}</source>
        <translation>{name} 추가 메뉴</translation>
    </message>
</context>
<context>
    <name>FileWork</name>
    <message numerus="yes">
        <source>The check was stopped; %n file(s) were found intact.</source>
        <translation>
            <numerusform>검증을 중지했습니다. 파일 %n개는 이상이 없었습니다.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n file(s) checked: no fault found.</source>
        <translation>
            <numerusform>파일 %n개를 검증했습니다. 모두 이상이 없습니다.</numerusform>
        </translation>
    </message>
    <message>
        <source>There is no GGUF file there.</source>
        <translation>그곳에는 GGUF 파일이 없습니다.</translation>
    </message>
    <message>
        <source>Choose files whose names end in .gguf.</source>
        <translation>이름이 .gguf로 끝나는 파일을 선택하세요.</translation>
    </message>
    <message>
        <source>Show the models</source>
        <translation>모델 보기</translation>
    </message>
    <message>
        <source>{name} was taken in.</source>
        <translation>{name} 파일을 가져왔습니다.</translation>
    </message>
    <message>
        <source>{name} is complete: target and drafter are here.</source>
        <translation>{name} 모델이 준비되었습니다. 타깃과 드래프터가 모두 있습니다.</translation>
    </message>
    <message>
        <source>Use it now</source>
        <translation>지금 사용</translation>
    </message>
</context>
<context>
    <name>FilesCard</name>
    <message>
        <source>Use files I have</source>
        <translation>내 파일 사용</translation>
    </message>
    <message>
        <source>Any Gemma 4 as a GGUF file, and the drafter made for it. Drop them here in any order: their contents tell which is which.</source>
        <translation>모든 Gemma 4 GGUF 파일과 그에 맞는 드래프터를 사용할 수 있습니다. 순서에 상관없이 여기에 놓으면 내용을 보고 구분합니다.</translation>
    </message>
    <message>
        <source>Model (target)</source>
        <translation>모델(타깃)</translation>
    </message>
    <message>
        <source>The large file: it says every word.</source>
        <translation>큰 파일입니다. 모든 단어를 결정합니다.</translation>
    </message>
    <message>
        <source>Drafter (may be left out)</source>
        <translation>드래프터(선택 사항)</translation>
    </message>
    <message>
        <source>The small file: it guesses ahead. Its architecture is gemma4-assistant.</source>
        <translation>작은 파일입니다. 다음 토큰을 미리 추측합니다. 아키텍처는 gemma4-assistant입니다.</translation>
    </message>
    <message>
        <source>Load this pair</source>
        <translation>이 모델 쌍 불러오기</translation>
    </message>
    <message>
        <source>Now choose the model that this drafter was made for.</source>
        <translation>이제 이 드래프터에 맞는 모델을 선택하세요.</translation>
    </message>
    <message>
        <source>{name} is not a GGUF file. Only GGUF files can be loaded.</source>
        <translation>{name}: GGUF 파일이 아닙니다. GGUF 파일만 불러올 수 있습니다.</translation>
    </message>
    <message>
        <source>context {tokens}</source>
        <translation>컨텍스트 {tokens}</translation>
    </message>
</context>
<context>
    <name>FitView</name>
    <message>
        <source>Fits this machine</source>
        <translation>이 컴퓨터에서 실행 가능</translation>
    </message>
    <message>
        <source>Tight: close other programs first</source>
        <translation>빠듯함: 먼저 다른 프로그램을 닫으세요</translation>
    </message>
    <message>
        <source>Too large for this machine</source>
        <translation>이 컴퓨터에는 너무 큼</translation>
    </message>
    <message>
        <source>Looking at this machine…</source>
        <translation>이 컴퓨터를 확인하는 중…</translation>
    </message>
    <message>
        <source>Needs about {needed} of memory (an estimate).</source>
        <translation>메모리 약 {needed} 필요(추정치)</translation>
    </message>
    <message>
        <source>Needs more than {needed} of memory.</source>
        <translation>{needed}보다 많은 메모리 필요</translation>
    </message>
    <message>
        <source>Probably fits</source>
        <translation>실행 가능할 것으로 보임</translation>
    </message>
    <message>
        <source>About {needed} needed · {free} of {total} free</source>
        <translation>약 {needed} 필요 · {total} 중 {free} 여유</translation>
    </message>
    <message>
        <source>More than {needed} needed · {free} of {total} free</source>
        <translation>{needed}보다 많이 필요 · {total} 중 {free} 여유</translation>
    </message>
    <message>
        <source>An estimate, for a chat of usual length.</source>
        <translation>보통 길이의 대화를 기준으로 한 추정치입니다.</translation>
    </message>
    <message>
        <source>An estimate, without the memory of the chat itself.</source>
        <translation>대화용 메모리를 제외한 추정치입니다.</translation>
    </message>
</context>
<context>
    <name>Fold</name>
    <message>
        <source>Larger models</source>
        <translation>더 큰 모델</translation>
    </message>
    <message>
        <source>{names}: for machines with much memory.</source>
        <translation>{names}: 메모리가 넉넉한 컴퓨터용입니다.</translation>
    </message>
</context>
<context>
    <name>FoundRow</name>
    <message>
        <source>Recognised by its sha256: {name}, {role}, from {source}.</source>
        <translation>sha256 값으로 확인: {name}, {role}, 출처 {source}.</translation>
    </message>
    <message>
        <source>It is here already.</source>
        <translation>이미 있는 파일입니다.</translation>
    </message>
    <message>
        <source>Import {name}</source>
        <translation>{name} 가져오기</translation>
    </message>
</context>
<context>
    <name>Header</name>
    <message>
        <source>Acceptance rate of the last answer: {rate}</source>
        <translation>최근 답변의 수락률: {rate}</translation>
    </message>
    <message>
        <source>Turn the drafter off</source>
        <translation>드래프터 끄기</translation>
    </message>
    <message>
        <source>Turn the drafter on</source>
        <translation>드래프터 켜기</translation>
    </message>
    <message>
        <source>Load the pair again</source>
        <translation>모델 쌍 다시 불러오기</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>모델 선택</translation>
    </message>
    <message>
        <source>Show or hide the list of chats</source>
        <translation>대화 목록 표시/숨기기</translation>
    </message>
    <message>
        <source>Loading…</source>
        <translation>불러오는 중…</translation>
    </message>
    <message>
        <source>Not loaded</source>
        <translation>불러오지 않음</translation>
    </message>
    <message>
        <source>Model: {name}</source>
        <translation>모델: {name}</translation>
    </message>
    <message>
        <source>Context used</source>
        <translation>컨텍스트 사용량</translation>
    </message>
    <message>
        <source>Drafter on · length {length}</source>
        <translation>드래프터 켜짐 · 길이 {length}</translation>
    </message>
    <message>
        <source>No drafter</source>
        <translation>드래프터 없음</translation>
    </message>
    <message>
        <source>Drafter off</source>
        <translation>드래프터 꺼짐</translation>
    </message>
    <message>
        <source>Drafter ready</source>
        <translation>드래프터 준비됨</translation>
    </message>
    <message>
        <source>Drafter failed</source>
        <translation>드래프터 오류</translation>
    </message>
    <message>
        <source>No pair is loaded.</source>
        <translation>불러온 모델 쌍이 없습니다.</translation>
    </message>
    <message>
        <source>Answers come from the target alone, one token per pass.</source>
        <translation>타깃만으로 답변합니다. 패스마다 한 토큰씩 생성합니다.</translation>
    </message>
    <message>
        <source>Loaded. It counts as on as soon as the target has verified its first drafts.</source>
        <translation>불러왔습니다. 타깃이 첫 드래프트를 검증하면 켜진 것으로 표시됩니다.</translation>
    </message>
    <message>
        <source>The target has verified its drafts in this session.</source>
        <translation>이번 세션에서 타깃이 드래프트를 검증했습니다.</translation>
    </message>
    <message>
        <source>The target verifies its drafts and rejects nearly all of them.</source>
        <translation>타깃이 드래프트를 검증하지만 거의 모두 거절합니다.</translation>
    </message>
    <message>
        <source>Answers come from the target alone.</source>
        <translation>타깃만으로 답변합니다.</translation>
    </message>
    <message>
        <source>Context {share} full</source>
        <translation>컨텍스트 {share} 사용</translation>
    </message>
    <message>
        <source>Context: {used} of {limit} tokens. When it is full, the oldest turns are left out.</source>
        <translation>컨텍스트: {used} / {limit}토큰. 가득 차면 가장 오래된 내용부터 제외됩니다.</translation>
    </message>
    <message>
        <source>Target: {file}, {kind}, {size}</source>
        <translation>타깃: {file}, {kind}, {size}</translation>
    </message>
    <message>
        <source>Drafter: {file}, {kind}, {size}</source>
        <translation>드래프터: {file}, {kind}, {size}</translation>
    </message>
    <message numerus="yes">
        <source>%n thread(s)</source>
        <translation>
            <numerusform>스레드 %n개</numerusform>
        </translation>
    </message>
    <message>
        <source>Device: {device}, {threads}</source>
        <translation>장치: {device}, {threads}</translation>
    </message>
    <message>
        <source>{name} · not loaded</source>
        <translation>{name} · 불러오지 않음</translation>
    </message>
</context>
<context>
    <name>ImportDialog</name>
    <message numerus="yes">
        <source>Import %n file(s)</source>
        <translation>
            <numerusform>파일 %n개 가져오기</numerusform>
        </translation>
    </message>
    <message>
        <source>Import files</source>
        <translation>파일 가져오기</translation>
    </message>
    <message>
        <source>What each file is was read from its contents, not from its name.</source>
        <translation>각 파일의 종류는 이름이 아니라 내용을 읽어 확인했습니다.</translation>
    </message>
    <message>
        <source>How to import</source>
        <translation>가져오는 방법</translation>
    </message>
    <message>
        <source>Link</source>
        <translation>링크로 연결</translation>
    </message>
    <message>
        <source>A second name for the same bytes, which takes no room. From another drive it is a copy.</source>
        <translation>같은 파일에 이름을 하나 더 붙이므로 공간을 더 쓰지 않습니다. 다른 드라이브에 있으면 복사합니다.</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>복사</translation>
    </message>
    <message>
        <source>Tandem gets files of its own, which take as much room again.</source>
        <translation>Tandem용 파일을 따로 만듭니다. 파일 크기만큼 공간을 더 씁니다.</translation>
    </message>
    <message>
        <source>Use where they are</source>
        <translation>원래 위치에서 사용</translation>
    </message>
    <message>
        <source>Nothing is copied. When another program removes or changes them, they are gone here too.</source>
        <translation>복사하지 않습니다. 다른 프로그램이 파일을 지우거나 바꾸면 여기에서도 쓸 수 없게 됩니다.</translation>
    </message>
    <message>
        <source>target</source>
        <translation>타깃</translation>
    </message>
    <message>
        <source>drafter</source>
        <translation>드래프터</translation>
    </message>
    <message>
        <source>model without a drafter</source>
        <translation>드래프터 없는 모델</translation>
    </message>
</context>
<context>
    <name>ImportedCard</name>
    <message>
        <source>Your own files</source>
        <translation>내 파일</translation>
    </message>
    <message>
        <source>Imported files that Tandem does not know. Use one to make a pair.</source>
        <translation>직접 가져온 파일 중 Tandem의 모델 목록에 없는 것입니다. ‘사용’을 누르면 모델 쌍을 만들 수 있습니다.</translation>
    </message>
</context>
<context>
    <name>ImportedRow</name>
    <message>
        <source>Target</source>
        <translation>타깃</translation>
    </message>
    <message>
        <source>Drafter</source>
        <translation>드래프터</translation>
    </message>
    <message>
        <source>Model without a drafter</source>
        <translation>드래프터 없는 모델</translation>
    </message>
    <message>
        <source>used where it is</source>
        <translation>원래 위치에서 사용</translation>
    </message>
    <message>
        <source>licence unknown</source>
        <translation>라이선스 알 수 없음</translation>
    </message>
    <message>
        <source>Verify files</source>
        <translation>파일 검증</translation>
    </message>
    <message>
        <source>Tandem forgets it. The file stays where it is.</source>
        <translation>Tandem 목록에서만 제거합니다. 파일은 원래 위치에 그대로 있습니다.</translation>
    </message>
    <message>
        <source>This frees {size}.</source>
        <translation>{size} 공간이 확보됩니다.</translation>
    </message>
</context>
<context>
    <name>Legend</name>
    <message>
        <source>accepted draft</source>
        <translation>수락된 드래프트</translation>
    </message>
    <message>
        <source>target&apos;s own token</source>
        <translation>타깃의 자체 토큰</translation>
    </message>
    <message>
        <source>draft rejected here</source>
        <translation>드래프트가 거절된 곳</translation>
    </message>
    <message>
        <source>Legend</source>
        <translation>범례</translation>
    </message>
    <message>
        <source>Underlined on a tint: accepted draft. Plain: target&apos;s own token. Dotted underline: draft rejected here.</source>
        <translation>배경색과 밑줄: 수락된 드래프트. 표시 없음: 타깃의 자체 토큰. 점선 밑줄: 드래프트가 거절된 곳.</translation>
    </message>
</context>
<context>
    <name>LinkedView</name>
    <message>
        <source>{name}, link</source>
        <translation>{name}, 링크</translation>
    </message>
</context>
<context>
    <name>LoadBar</name>
    <message>
        <source>Cancel</source>
        <translation>취소</translation>
    </message>
    <message>
        <source>Progress</source>
        <translation>진행률</translation>
    </message>
    <message>
        <source>Starting the engine…</source>
        <translation>엔진을 시작하는 중…</translation>
    </message>
    <message>
        <source>Loading the target…</source>
        <translation>타깃을 불러오는 중…</translation>
    </message>
    <message>
        <source>Loading the drafter…</source>
        <translation>드래프터를 불러오는 중…</translation>
    </message>
    <message>
        <source>Finding the fastest number of threads…</source>
        <translation>가장 빠른 스레드 수를 찾는 중…</translation>
    </message>
    <message>
        <source>Reading the conversation: {done} of {total} tokens</source>
        <translation>대화를 읽는 중: {done} / {total}토큰</translation>
    </message>
</context>
<context>
    <name>LoadView</name>
    <message>
        <source>Cancel</source>
        <translation>취소</translation>
    </message>
    <message>
        <source>Starting the engine…</source>
        <translation>엔진을 시작하는 중…</translation>
    </message>
    <message>
        <source>Loading the model…</source>
        <translation>모델을 불러오는 중…</translation>
    </message>
    <message>
        <source>Loading the drafter…</source>
        <translation>드래프터를 불러오는 중…</translation>
    </message>
    <message>
        <source>Measuring how many threads are fastest…</source>
        <translation>가장 빠른 스레드 수를 측정하는 중…</translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>불러오는 중</translation>
    </message>
</context>
<context>
    <name>MainWindow</name>
    <message>
        <source>Chat</source>
        <translation>채팅</translation>
    </message>
    <message>
        <source>Models</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>Compare</source>
        <translation>비교</translation>
    </message>
    <message>
        <source>Settings</source>
        <translation>설정</translation>
    </message>
    <message>
        <source>Save logs</source>
        <translation>로그 저장</translation>
    </message>
    <message>
        <source>Zip files (*.zip)</source>
        <translation>ZIP 파일 (*.zip)</translation>
    </message>
    <message>
        <source>No program here shows folders. It is: {folder}</source>
        <translation>폴더를 열 수 있는 프로그램이 없습니다. 위치: {folder}</translation>
    </message>
</context>
<context>
    <name>ModelCard</name>
    <message>
        <source>Source of {name}</source>
        <translation>{name} 출처</translation>
    </message>
    <message>
        <source>Source</source>
        <translation>출처</translation>
    </message>
    <message>
        <source>Size</source>
        <translation>크기</translation>
    </message>
    <message>
        <source>Licence</source>
        <translation>라이선스</translation>
    </message>
    <message>
        <source>More for {name}</source>
        <translation>{name} 추가 메뉴</translation>
    </message>
    <message>
        <source>{source} · {quantisation} (here)</source>
        <translation>{source} · {quantisation}(설치됨)</translation>
    </message>
    <message>
        <source>{size} on disk</source>
        <translation>디스크에 {size}</translation>
    </message>
    <message>
        <source>{size}, checked on {day}</source>
        <translation>{size}({day} 확인)</translation>
    </message>
    <message>
        <source>{size} in two files</source>
        <translation>{size}(파일 2개)</translation>
    </message>
    <message>
        <source>more than {size} in two files</source>
        <translation>{size} 초과(파일 2개)</translation>
    </message>
    <message>
        <source>Open settings</source>
        <translation>설정 열기</translation>
    </message>
    <message>
        <source>Other source</source>
        <translation>다른 출처</translation>
    </message>
    <message>
        <source>The smaller one: quick, good for everyday questions.</source>
        <translation>작은 모델입니다. 빠르고 일상적인 질문에 적합합니다.</translation>
    </message>
    <message>
        <source>The larger one: better answers, more slowly.</source>
        <translation>큰 모델입니다. 답변이 더 좋지만 더 느립니다.</translation>
    </message>
    <message>
        <source>Better answers, on machines with memory to spare.</source>
        <translation>메모리가 넉넉한 컴퓨터에서 더 좋은 답변을 냅니다.</translation>
    </message>
    <message>
        <source>A mixture of experts: large in memory, a part of it works on each token.</source>
        <translation>전문가 혼합(MoE) 모델입니다. 메모리를 많이 차지하지만 토큰마다 일부만 작동합니다.</translation>
    </message>
    <message>
        <source>The largest: the best answers, slow without a graphics card.</source>
        <translation>가장 큰 모델입니다. 답변이 가장 좋지만 그래픽 카드가 없으면 느립니다.</translation>
    </message>
    <message>
        <source>The drafter&apos;s hash is taken from the Hub at the first download.</source>
        <translation>드래프터의 해시 값은 처음 다운로드할 때 허브에서 가져옵니다.</translation>
    </message>
</context>
<context>
    <name>ModelStates</name>
    <message>
        <source>Not on this machine</source>
        <translation>이 컴퓨터에 없음</translation>
    </message>
    <message>
        <source>Waits for its turn</source>
        <translation>차례를 기다리는 중</translation>
    </message>
    <message>
        <source>Asking the Hub</source>
        <translation>허브에 확인하는 중</translation>
    </message>
    <message>
        <source>Downloading</source>
        <translation>다운로드 중</translation>
    </message>
    <message>
        <source>Paused</source>
        <translation>일시 중지됨</translation>
    </message>
    <message>
        <source>Checking</source>
        <translation>확인 중</translation>
    </message>
    <message>
        <source>Installed</source>
        <translation>설치됨</translation>
    </message>
    <message>
        <source>Verifying</source>
        <translation>검증 중</translation>
    </message>
    <message>
        <source>Changed since it was checked</source>
        <translation>확인 후 변경됨</translation>
    </message>
    <message>
        <source>Missing</source>
        <translation>파일 없음</translation>
    </message>
    <message>
        <source>Set aside</source>
        <translation>따로 보관됨</translation>
    </message>
    <message>
        <source>In use</source>
        <translation>사용 중</translation>
    </message>
    <message>
        <source>Download</source>
        <translation>다운로드</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>취소</translation>
    </message>
    <message>
        <source>Pause</source>
        <translation>일시 중지</translation>
    </message>
    <message>
        <source>Resume</source>
        <translation>이어받기</translation>
    </message>
    <message>
        <source>Start again</source>
        <translation>다시 받기</translation>
    </message>
    <message>
        <source>Use</source>
        <translation>사용</translation>
    </message>
    <message>
        <source>Verify files</source>
        <translation>파일 검증</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>중지</translation>
    </message>
    <message>
        <source>{done} of {total} · {percent}</source>
        <translation>{done} / {total} · {percent}</translation>
    </message>
    <message>
        <source>{size}/s</source>
        <translation>{size}/s</translation>
    </message>
    <message>
        <source>{seconds} s left</source>
        <translation>{seconds}초 남음</translation>
    </message>
    <message>
        <source>{minutes} min left</source>
        <translation>{minutes}분 남음</translation>
    </message>
    <message>
        <source>more than two days left</source>
        <translation>이틀 넘게 남음</translation>
    </message>
    <message>
        <source>{hours} h {minutes} min left</source>
        <translation>{hours}시간 {minutes}분 남음</translation>
    </message>
    <message>
        <source>{name} (file {place} of {count})</source>
        <translation>{name}(파일 {place}/{count})</translation>
    </message>
    <message>
        <source>{why} Try {attempt} begins in {seconds} s.</source>
        <translation>{why} {seconds}초 뒤에 {attempt}번째 시도를 시작합니다.</translation>
    </message>
    <message>
        <source>Could not be downloaded</source>
        <translation>다운로드하지 못함</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>다시 시도</translation>
    </message>
    <message>
        <source>{source} · drafter: {owner}</source>
        <translation>{source} · 드래프터: {owner}</translation>
    </message>
</context>
<context>
    <name>ModelsKeeper</name>
    <message>
        <source>{name} is not complete here.</source>
        <translation>{name} 모델의 파일이 다 있지 않습니다.</translation>
    </message>
    <message>
        <source>Download it first.</source>
        <translation>먼저 다운로드하세요.</translation>
    </message>
    <message>
        <source>Show the models</source>
        <translation>모델 보기</translation>
    </message>
    <message>
        <source>{name} is in use.</source>
        <translation>{name}: 사용 중입니다.</translation>
    </message>
    <message>
        <source>Use another model first, then remove it.</source>
        <translation>먼저 다른 모델을 사용한 다음 제거하세요.</translation>
    </message>
    <message>
        <source>{name} is out of Tandem&apos;s list; the file itself stays where it is.</source>
        <translation>{name} 항목을 Tandem 목록에서 제거했습니다. 파일은 원래 위치에 그대로 있습니다.</translation>
    </message>
    <message>
        <source>{name} was removed.</source>
        <translation>{name} 항목을 제거했습니다.</translation>
    </message>
    <message>
        <source>The token is in the system&apos;s keyring.</source>
        <translation>로그인 토큰을 시스템 키링에 저장했습니다.</translation>
    </message>
    <message>
        <source>The token was removed from the system&apos;s keyring.</source>
        <translation>로그인 토큰을 시스템 키링에서 제거했습니다.</translation>
    </message>
    <message numerus="yes">
        <source>%n model file(s) are missing or changed since the last check: {names}.</source>
        <translation>
            <numerusform>모델 파일 %n개가 없거나 마지막 확인 이후 바뀌었습니다: {names}.</numerusform>
        </translation>
    </message>
    <message>
        <source>The models are in {folder} now.</source>
        <translation>이제 모델이 {folder} 폴더에 있습니다.</translation>
    </message>
</context>
<context>
    <name>ModelsPage</name>
    <message>
        <source>Gemma 4 with its drafter</source>
        <translation>Gemma 4와 드래프터</translation>
    </message>
    <message>
        <source>{variable} is set: Tandem opens no connection and downloads nothing.</source>
        <translation>환경 변수 {variable} 설정에 따라 Tandem은 네트워크에 연결하지 않으며 아무것도 다운로드하지 않습니다.</translation>
    </message>
    <message>
        <source>Start Tandem without that variable to download models. Files of your own can be imported.</source>
        <translation>모델을 다운로드하려면 이 변수 없이 Tandem을 시작하세요. 가지고 있는 파일은 지금도 가져올 수 있습니다.</translation>
    </message>
    <message>
        <source>Drop files to import them</source>
        <translation>가져올 파일을 여기에 놓으세요</translation>
    </message>
    <message>
        <source>Import files</source>
        <translation>파일 가져오기</translation>
    </message>
    <message>
        <source>Model files (*.gguf)</source>
        <translation>모델 파일 (*.gguf)</translation>
    </message>
    <message>
        <source>All files (*)</source>
        <translation>모든 파일 (*)</translation>
    </message>
</context>
<context>
    <name>ModelsSection</name>
    <message>
        <source>Models and network</source>
        <translation>모델 및 네트워크</translation>
    </message>
    <message>
        <source>Model folder</source>
        <translation>모델 폴더</translation>
    </message>
    <message>
        <source>Choosing another folder moves all model files there, also to another drive.</source>
        <translation>폴더를 바꾸면 모든 모델 파일을 새 폴더로 옮깁니다. 다른 드라이브도 됩니다.</translation>
    </message>
    <message>
        <source>Change…</source>
        <translation>변경…</translation>
    </message>
    <message>
        <source>Change the model folder</source>
        <translation>모델 폴더 변경</translation>
    </message>
    <message>
        <source>Open</source>
        <translation>열기</translation>
    </message>
    <message>
        <source>Open the model folder</source>
        <translation>모델 폴더 열기</translation>
    </message>
    <message>
        <source>Stop</source>
        <translation>중지</translation>
    </message>
    <message>
        <source>Stop moving the models</source>
        <translation>모델 옮기기 중지</translation>
    </message>
    <message>
        <source>Address of the Hub</source>
        <translation>허브 주소</translation>
    </message>
    <message>
        <source>Left empty, models come from Hugging Face. A mirror has an address of its own.</source>
        <translation>비워 두면 Hugging Face에서 모델을 받습니다. 미러를 쓰려면 그 주소를 입력하세요.</translation>
    </message>
    <message>
        <source>Proxy</source>
        <translation>프록시</translation>
    </message>
    <message>
        <source>Automatic takes the system&apos;s proxy or HTTPS_PROXY.</source>
        <translation>‘자동’은 시스템 프록시나 HTTPS_PROXY를 사용합니다.</translation>
    </message>
    <message>
        <source>Address of the proxy</source>
        <translation>프록시 주소</translation>
    </message>
    <message>
        <source>No limit</source>
        <translation>제한 없음</translation>
    </message>
    <message>
        <source> MiB/s</source>
        <translation> MiB/s</translation>
    </message>
    <message>
        <source>Speed limit</source>
        <translation>속도 제한</translation>
    </message>
    <message>
        <source>The most that a download may use of your connection.</source>
        <translation>다운로드가 사용할 수 있는 최대 연결 속도입니다.</translation>
    </message>
    <message>
        <source>Connections</source>
        <translation>연결 수</translation>
    </message>
    <message>
        <source>How many a download uses at a time, where the server allows it.</source>
        <translation>다운로드할 때 동시에 사용할 연결 수입니다. 서버가 허용할 때만 적용됩니다.</translation>
    </message>
    <message>
        <source>Sign-in token</source>
        <translation>로그인 토큰</translation>
    </message>
    <message>
        <source>Keep</source>
        <translation>저장</translation>
    </message>
    <message>
        <source>Keep the token in the keyring</source>
        <translation>로그인 토큰을 키링에 저장</translation>
    </message>
    <message>
        <source>Forget</source>
        <translation>제거</translation>
    </message>
    <message>
        <source>Remove the token from the keyring</source>
        <translation>로그인 토큰을 키링에서 제거</translation>
    </message>
    <message>
        <source>From the environment</source>
        <translation>환경 변수 설정</translation>
    </message>
    <message>
        <source>Secure connections are checked with this system&apos;s own certificates, those of a company&apos;s proxy too.</source>
        <translation>보안 연결은 이 시스템에 설치된 인증서로 확인합니다. 회사 프록시의 인증서도 포함됩니다.</translation>
    </message>
    <message>
        <source>Moving the models</source>
        <translation>모델을 옮기는 중</translation>
    </message>
    <message>
        <source>In use: {address}, {origin}.</source>
        <translation>사용 중: {address} ({origin}).</translation>
    </message>
    <message>
        <source>Automatic</source>
        <translation>자동</translation>
    </message>
    <message>
        <source>None</source>
        <translation>없음</translation>
    </message>
    <message>
        <source>One of my own</source>
        <translation>직접 입력</translation>
    </message>
    <message>
        <source>{variable} is set: Tandem opens no connection and downloads nothing.</source>
        <translation>환경 변수 {variable} 설정에 따라 Tandem은 네트워크에 연결하지 않으며 아무것도 다운로드하지 않습니다.</translation>
    </message>
    <message>
        <source>Start Tandem without that variable to download models.</source>
        <translation>모델을 다운로드하려면 이 변수 없이 Tandem을 시작하세요.</translation>
    </message>
    <message>
        <source>The one in HF_TOKEN is used.</source>
        <translation>환경 변수 HF_TOKEN의 토큰을 사용합니다.</translation>
    </message>
    <message>
        <source>One is kept in this system&apos;s keyring.</source>
        <translation>이 시스템의 키링(암호 저장소)에 저장되어 있습니다.</translation>
    </message>
    <message>
        <source>The one of the Hub&apos;s own login is used.</source>
        <translation>허브 로그인 명령으로 저장한 토큰을 사용합니다.</translation>
    </message>
    <message>
        <source>No token, and Gemma 4 needs none. A token raises the Hub&apos;s limits, and goes to the Hub alone.</source>
        <translation>토큰이 없으며, Gemma 4에는 필요하지 않습니다. 토큰이 있으면 허브의 요청 한도가 늘어납니다. 토큰은 허브에만 보냅니다.</translation>
    </message>
    <message>
        <source>None of the variables that count is set.</source>
        <translation>관련 환경 변수가 설정되어 있지 않습니다.</translation>
    </message>
    <message>
        <source>address of the Hub</source>
        <translation>허브 주소</translation>
    </message>
    <message>
        <source>sign-in token</source>
        <translation>로그인 토큰</translation>
    </message>
    <message>
        <source>place of the Hub&apos;s own login</source>
        <translation>허브 로그인 정보의 위치</translation>
    </message>
    <message>
        <source>proxy</source>
        <translation>프록시</translation>
    </message>
    <message>
        <source>hosts that need no proxy</source>
        <translation>프록시를 쓰지 않는 호스트</translation>
    </message>
    <message>
        <source>no connection at all</source>
        <translation>네트워크 연결 안 함</translation>
    </message>
    <message>
        <source>certificates</source>
        <translation>인증서</translation>
    </message>
    <message>
        <source>as set here</source>
        <translation>여기에서 설정</translation>
    </message>
    <message>
        <source>from the system</source>
        <translation>시스템 설정</translation>
    </message>
    <message>
        <source>from {variable}</source>
        <translation>환경 변수 {variable}</translation>
    </message>
    <message>
        <source>This is not an address, so it is not used. An address begins with {scheme}.</source>
        <translation>올바른 주소가 아니어서 사용하지 않습니다. 주소 앞부분은 {scheme} 형식이어야 합니다.</translation>
    </message>
</context>
<context>
    <name>Notice</name>
    <message>
        <source>Dismiss</source>
        <translation>닫기</translation>
    </message>
</context>
<context>
    <name>Numbers</name>
    <message>
        <source>{seconds} s</source>
        <translation>{seconds}초</translation>
    </message>
    <message>
        <source>{minutes} min {seconds} s</source>
        <translation>{minutes}분 {seconds}초</translation>
    </message>
    <message>
        <source>{number}%</source>
        <translation>{number}%</translation>
    </message>
    <message>
        <source>{number} ms</source>
        <translation>{number}ms</translation>
    </message>
</context>
<context>
    <name>PageHead</name>
    <message>
        <source>Models</source>
        <translation>모델</translation>
    </message>
    <message>
        <source>Import files…</source>
        <translation>파일 가져오기…</translation>
    </message>
    <message>
        <source>More for all models</source>
        <translation>전체 모델 추가 메뉴</translation>
    </message>
    <message>
        <source>Looking at this machine…</source>
        <translation>이 컴퓨터를 확인하는 중…</translation>
    </message>
    <message numerus="yes">
        <source>{cpu} · %n CPU(s) · {free} of {total} memory free</source>
        <translation>
            <numerusform>{cpu} · CPU %n개 · 메모리 {total} 중 {free} 사용 가능</numerusform>
        </translation>
    </message>
    <message>
        <source>{free} free in {folder}</source>
        <translation>여유 공간 {free} · {folder}</translation>
    </message>
    <message>
        <source>Verify files</source>
        <translation>파일 검증</translation>
    </message>
    <message>
        <source>Find files of other programs</source>
        <translation>다른 프로그램의 파일 찾기</translation>
    </message>
    <message>
        <source>Show the model folder</source>
        <translation>모델 폴더 보기</translation>
    </message>
    <message>
        <source>Models and network</source>
        <translation>모델 및 네트워크</translation>
    </message>
</context>
<context>
    <name>Pages</name>
    <message numerus="yes">
        <source>%n log file(s) saved.</source>
        <translation>
            <numerusform>로그 파일 %n개를 저장했습니다.</numerusform>
        </translation>
    </message>
</context>
<context>
    <name>Pair</name>
    <message>
        <source>Demo pair</source>
        <translation>데모 모델 쌍</translation>
    </message>
</context>
<context>
    <name>PairCard</name>
    <message>
        <source>In use</source>
        <translation>사용 중</translation>
    </message>
    <message>
        <source>Nothing loaded</source>
        <translation>불러온 모델 없음</translation>
    </message>
    <message>
        <source>Loading</source>
        <translation>불러오는 중</translation>
    </message>
    <message>
        <source>Ready</source>
        <translation>준비됨</translation>
    </message>
    <message>
        <source>Failed</source>
        <translation>실패</translation>
    </message>
    <message>
        <source>Load again</source>
        <translation>다시 불러오기</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>다시 시도</translation>
    </message>
    <message>
        <source>Load</source>
        <translation>불러오기</translation>
    </message>
    <message>
        <source>Demo pair</source>
        <translation>데모 모델 쌍</translation>
    </message>
    <message>
        <source>Settings of the engine were changed. They count from the next load on.</source>
        <translation>엔진 설정이 변경되었습니다. 다음에 불러올 때 적용됩니다.</translation>
    </message>
    <message>
        <source>none</source>
        <translation>없음</translation>
    </message>
    <message>
        <source>a look-up in the text so far</source>
        <translation>지금까지의 텍스트에서 찾기</translation>
    </message>
    <message>
        <source>{tokens} tokens, trained for {trained}</source>
        <translation>{tokens}토큰(학습된 길이 {trained})</translation>
    </message>
    <message numerus="yes">
        <source>{device} · %n thread(s)</source>
        <translation>
            <numerusform>{device} · 스레드 %n개</numerusform>
        </translation>
    </message>
    <message>
        <source>Target</source>
        <translation>타깃</translation>
    </message>
    <message>
        <source>Drafter</source>
        <translation>드래프터</translation>
    </message>
    <message>
        <source>Context</source>
        <translation>컨텍스트</translation>
    </message>
    <message>
        <source>Runs on</source>
        <translation>실행 장치</translation>
    </message>
    <message>
        <source>Loaded in</source>
        <translation>불러오기 시간</translation>
    </message>
</context>
<context>
    <name>PairKeeper</name>
    <message>
        <source>Loading was stopped. There is no model in use.</source>
        <translation>불러오기를 중지했습니다. 사용 중인 모델이 없습니다.</translation>
    </message>
    <message>
        <source>Load again</source>
        <translation>다시 불러오기</translation>
    </message>
    <message>
        <source>Choose a model</source>
        <translation>모델 선택</translation>
    </message>
    <message>
        <source>Turn it off</source>
        <translation>드래프터 끄기</translation>
    </message>
    <message>
        <source>Without the drafter: {reason}</source>
        <translation>드래프터 없이 실행: {reason}</translation>
    </message>
    <message>
        <source>This model cannot have a context of {wanted} tokens; it was loaded with {size}.</source>
        <translation>이 모델은 {wanted}토큰 컨텍스트를 지원하지 않아 {size}토큰으로 불러왔습니다.</translation>
    </message>
</context>
<context>
    <name>PlaceRow</name>
    <message>
        <source>in the Hub&apos;s cache</source>
        <translation>허브 캐시</translation>
    </message>
    <message>
        <source>of LM Studio</source>
        <translation>LM Studio</translation>
    </message>
    <message>
        <source>of Ollama</source>
        <translation>Ollama</translation>
    </message>
    <message>
        <source>of llama.cpp</source>
        <translation>llama.cpp</translation>
    </message>
    <message>
        <source>among the downloads</source>
        <translation>다운로드 폴더</translation>
    </message>
    <message>
        <source>probably {name}</source>
        <translation>{name} 추정</translation>
    </message>
    <message>
        <source>Look at {name}</source>
        <translation>{name} 살펴보기</translation>
    </message>
</context>
<context>
    <name>PlacesDialog</name>
    <message numerus="yes">
        <source>Look at %n file(s)</source>
        <translation>
            <numerusform>파일 %n개 살펴보기</numerusform>
        </translation>
    </message>
    <message>
        <source>Files of other programs</source>
        <translation>다른 프로그램의 파일</translation>
    </message>
    <message>
        <source>Choose what Tandem is to look at. Reading a file of some GiB takes a few seconds.</source>
        <translation>Tandem이 살펴볼 파일을 선택하세요. 몇 GiB 크기의 파일을 읽는 데는 몇 초가 걸립니다.</translation>
    </message>
    <message>
        <source>None was found in the Hub&apos;s cache, LM Studio, Ollama, llama.cpp or your Downloads folder. Files elsewhere can be dropped on the page Models.</source>
        <translation>허브 캐시, LM Studio, Ollama, llama.cpp, 다운로드 폴더에서 파일을 찾지 못했습니다. 다른 곳에 있는 파일은 ‘모델’ 페이지로 끌어다 놓으세요.</translation>
    </message>
    <message>
        <source>Cancel</source>
        <translation>취소</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>닫기</translation>
    </message>
</context>
<context>
    <name>Preferences</name>
    <message>
        <source>The file with your settings could not be used as it is. It is kept as {path}.</source>
        <translation>설정 파일을 그대로 사용할 수 없어 {path}에 보관했습니다.</translation>
    </message>
    <message>
        <source>Some settings made no sense and have their default now: {names}.</source>
        <translation>올바르지 않은 설정을 기본값으로 되돌렸습니다: {names}.</translation>
    </message>
</context>
<context>
    <name>PrivacySection</name>
    <message>
        <source>Privacy</source>
        <translation>개인 정보 보호</translation>
    </message>
    <message>
        <source>No telemetry, no account, no check for updates. What you write and what is answered stays on this machine.</source>
        <translation>원격 측정도, 계정도, 업데이트 확인도 없습니다. 입력한 내용과 답변은 모두 이 컴퓨터에만 남습니다.</translation>
    </message>
    <message>
        <source>Host</source>
        <translation>호스트</translation>
    </message>
    <message>
        <source>When</source>
        <translation>시점</translation>
    </message>
    <message>
        <source>What is sent</source>
        <translation>보내는 내용</translation>
    </message>
    <message>
        <source>A deleted chat stays in Tandem&apos;s file for at least a day and is removed when Tandem next starts. “Remove now” under “Chats and files” removes it at once.</source>
        <translation>삭제한 대화는 최소 하루 동안 Tandem의 파일에 남아 있다가 그 뒤 Tandem을 시작할 때 제거됩니다. “대화 및 파일”의 “지금 제거”를 누르면 바로 제거됩니다.</translation>
    </message>
    <message>
        <source>Tandem goes online for one thing alone: to download a model, when you ask for it.</source>
        <translation>Tandem은 사용자가 요청한 모델을 다운로드할 때만 인터넷에 연결합니다.</translation>
    </message>
    <message>
        <source>Offline mode is on: Tandem opens no network connection.</source>
        <translation>오프라인 모드가 켜져 있어 Tandem은 네트워크에 연결하지 않습니다.</translation>
    </message>
    <message>
        <source>When you press Download, Resume, Try again or Start again.</source>
        <translation>‘다운로드’, ‘이어받기’, ‘다시 시도’, ‘다시 받기’를 누를 때</translation>
    </message>
    <message>
        <source>The names of repository and file. Your token, if you have one.</source>
        <translation>저장소 이름과 파일 이름. 로그인 토큰이 있으면 토큰도 보냅니다.</translation>
    </message>
    <message>
        <source>storage hosts that the Hub names</source>
        <translation>허브가 알려 주는 저장소 호스트</translation>
    </message>
    <message>
        <source>During a download.</source>
        <translation>다운로드하는 동안</translation>
    </message>
    <message>
        <source>Which part of the file comes next. No token.</source>
        <translation>다음에 받을 파일 부분. 토큰은 보내지 않습니다.</translation>
    </message>
</context>
<context>
    <name>PromptSection</name>
    <message>
        <source>System prompt</source>
        <translation>시스템 프롬프트</translation>
    </message>
    <message>
        <source>For example: Answer briefly and in plain words.</source>
        <translation>예: 쉬운 말로 짧게 답변해 주세요.</translation>
    </message>
    <message>
        <source>Stands before every chat: who the model is, how it should answer.</source>
        <translation>모든 대화의 맨 앞에 놓입니다. 모델의 역할과 답변 방식을 정할 수 있습니다.</translation>
    </message>
    <message>
        <source>Longer than {limit} characters. It is not kept.</source>
        <translation>{limit}자를 넘어 저장되지 않습니다.</translation>
    </message>
</context>
<context>
    <name>QuarantineCard</name>
    <message>
        <source>Set aside</source>
        <translation>따로 보관한 파일</translation>
    </message>
    <message>
        <source>These files are not what they should be. Tandem does not use them, and deletes none.</source>
        <translation>내용이 올바르지 않은 파일입니다. Tandem은 이 파일을 사용하지 않으며, 알아서 지우지도 않습니다.</translation>
    </message>
</context>
<context>
    <name>QuarantinedRow</name>
    <message>
        <source>set aside on {day}</source>
        <translation>{day} 따로 보관</translation>
    </message>
    <message>
        <source>This frees {size}. The file cannot be brought back.</source>
        <translation>{size} 공간이 확보됩니다. 파일은 되돌릴 수 없습니다.</translation>
    </message>
</context>
<context>
    <name>RowDelegate</name>
    <message>
        <source>Name of the chat</source>
        <translation>대화 이름</translation>
    </message>
</context>
<context>
    <name>SamplingSection</name>
    <message>
        <source>How words are chosen</source>
        <translation>단어 선택 방식</translation>
    </message>
    <message>
        <source>Temperature</source>
        <translation>온도</translation>
    </message>
    <message>
        <source>Higher is more surprising. At 0 the likeliest token is taken each time.</source>
        <translation>높을수록 뜻밖의 답변이 나옵니다. 0이면 항상 가장 가능성 높은 토큰을 고릅니다.</translation>
    </message>
    <message>
        <source>Top-k</source>
        <translation>Top-k</translation>
    </message>
    <message>
        <source>Only the k likeliest tokens. 0 is no limit.</source>
        <translation>가능성이 가장 높은 k개의 토큰만 사용합니다. 0이면 제한이 없습니다.</translation>
    </message>
    <message>
        <source>Top-p</source>
        <translation>Top-p</translation>
    </message>
    <message>
        <source>Only the likeliest tokens that together reach this share. 1 is no limit.</source>
        <translation>확률의 합이 이 비율에 이를 때까지 가능성 높은 토큰만 사용합니다. 1이면 제한이 없습니다.</translation>
    </message>
    <message>
        <source>Min-p</source>
        <translation>Min-p</translation>
    </message>
    <message>
        <source>Nothing less likely than this share of the likeliest token. 0 is no limit.</source>
        <translation>가장 가능성 높은 토큰에 비해 확률이 이 비율보다 낮은 토큰은 제외합니다. 0이면 제한이 없습니다.</translation>
    </message>
    <message>
        <source>Repeat penalty</source>
        <translation>반복 페널티</translation>
    </message>
    <message>
        <source>Above 1 makes recent tokens less likely. 1 does nothing.</source>
        <translation>1보다 크면 최근에 나온 토큰이 덜 선택됩니다. 1이면 효과가 없습니다.</translation>
    </message>
    <message>
        <source>Longest answer</source>
        <translation>최대 답변 길이</translation>
    </message>
    <message>
        <source>In tokens. Without a limit an answer may fill the context.</source>
        <translation>토큰 단위입니다. 제한이 없으면 답변이 컨텍스트를 다 채울 수 있습니다.</translation>
    </message>
    <message>
        <source>No limit</source>
        <translation>제한 없음</translation>
    </message>
    <message>
        <source>Reset sampling to Gemma&apos;s defaults</source>
        <translation>샘플링을 Gemma 기본값으로 재설정</translation>
    </message>
    <message>
        <source>Above 2 an answer hardly makes sense any more.</source>
        <translation>2를 넘으면 답변의 뜻이 거의 통하지 않습니다.</translation>
    </message>
</context>
<context>
    <name>SearchField</name>
    <message>
        <source>Clear</source>
        <translation>지우기</translation>
    </message>
</context>
<context>
    <name>SettingsPage</name>
    <message>
        <source>Settings</source>
        <translation>설정</translation>
    </message>
    <message>
        <source>Sections</source>
        <translation>섹션</translation>
    </message>
</context>
<context>
    <name>Sheet</name>
    <message>
        <source>Cancel</source>
        <translation>취소</translation>
    </message>
</context>
<context>
    <name>Shortcuts</name>
    <message>
        <source>General</source>
        <translation>일반</translation>
    </message>
    <message>
        <source>Chats</source>
        <translation>대화</translation>
    </message>
    <message>
        <source>Answer</source>
        <translation>답변</translation>
    </message>
    <message>
        <source>Message field</source>
        <translation>메시지 입력란</translation>
    </message>
    <message>
        <source>Chat page</source>
        <translation>채팅 페이지</translation>
    </message>
    <message>
        <source>Models page</source>
        <translation>모델 페이지</translation>
    </message>
    <message>
        <source>Compare page</source>
        <translation>비교 페이지</translation>
    </message>
    <message>
        <source>Settings page</source>
        <translation>설정 페이지</translation>
    </message>
    <message>
        <source>Larger text</source>
        <translation>글자 크게</translation>
    </message>
    <message>
        <source>Smaller text</source>
        <translation>글자 작게</translation>
    </message>
    <message>
        <source>Normal text size</source>
        <translation>기본 글자 크기</translation>
    </message>
    <message>
        <source>Full screen</source>
        <translation>전체 화면</translation>
    </message>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>키보드 단축키</translation>
    </message>
    <message>
        <source>Quit</source>
        <translation>종료</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>새 대화</translation>
    </message>
    <message>
        <source>Search chats</source>
        <translation>대화 검색</translation>
    </message>
    <message>
        <source>Show or hide the list of chats</source>
        <translation>대화 목록 표시/숨기기</translation>
    </message>
    <message>
        <source>Rename the selected chat</source>
        <translation>선택한 대화 이름 바꾸기</translation>
    </message>
    <message>
        <source>Delete the selected chat</source>
        <translation>선택한 대화 삭제</translation>
    </message>
    <message>
        <source>Send</source>
        <translation>보내기</translation>
    </message>
    <message>
        <source>New line</source>
        <translation>줄 바꿈</translation>
    </message>
    <message>
        <source>Edit the last message, when the field is empty</source>
        <translation>마지막 메시지 편집(입력란이 비어 있을 때)</translation>
    </message>
    <message>
        <source>Go to the message field</source>
        <translation>메시지 입력란으로 이동</translation>
    </message>
    <message>
        <source>Drafter on or off</source>
        <translation>드래프터 켜기/끄기</translation>
    </message>
    <message>
        <source>Thinking on or off</source>
        <translation>생각하기 켜기/끄기</translation>
    </message>
    <message>
        <source>Stop the answer</source>
        <translation>답변 중지</translation>
    </message>
    <message>
        <source>Answer again</source>
        <translation>다시 답변</translation>
    </message>
    <message>
        <source>Edit the last message</source>
        <translation>마지막 메시지 편집</translation>
    </message>
    <message>
        <source>Copy the last answer</source>
        <translation>마지막 답변 복사</translation>
    </message>
    <message>
        <source>Show drafted tokens</source>
        <translation>드래프트한 토큰 표시</translation>
    </message>
    <message>
        <source>Text size</source>
        <translation>글자 크기</translation>
    </message>
    <message>
        <source>Undo the last delete</source>
        <translation>마지막 삭제 실행 취소</translation>
    </message>
</context>
<context>
    <name>ShortcutsDialog</name>
    <message>
        <source>Keyboard shortcuts</source>
        <translation>키보드 단축키</translation>
    </message>
    <message>
        <source>Close</source>
        <translation>닫기</translation>
    </message>
</context>
<context>
    <name>Sidebar</name>
    <message numerus="yes">
        <source>%n result(s)</source>
        <translation>
            <numerusform>결과 %n개</numerusform>
        </translation>
    </message>
    <message>
        <source>Nothing found for “{text}”</source>
        <translation>“{text}” 검색 결과 없음</translation>
    </message>
    <message>
        <source>What you ask and what is answered is kept here, on this machine only.</source>
        <translation>질문과 답변은 이 컴퓨터에만 보관됩니다.</translation>
    </message>
    <message>
        <source>No conversations yet</source>
        <translation>아직 대화가 없습니다</translation>
    </message>
    <message>
        <source>Rename</source>
        <translation>이름 바꾸기</translation>
    </message>
    <message>
        <source>Export as Markdown…</source>
        <translation>Markdown으로 내보내기…</translation>
    </message>
    <message>
        <source>Export as JSON…</source>
        <translation>JSON으로 내보내기…</translation>
    </message>
    <message>
        <source>Delete</source>
        <translation>삭제</translation>
    </message>
    <message>
        <source>Import chats…</source>
        <translation>대화 가져오기…</translation>
    </message>
    <message>
        <source>Export all as Markdown…</source>
        <translation>모두 Markdown으로 내보내기…</translation>
    </message>
    <message>
        <source>Export all as JSON…</source>
        <translation>모두 JSON으로 내보내기…</translation>
    </message>
    <message>
        <source>Conversations</source>
        <translation>대화</translation>
    </message>
    <message>
        <source>New chat</source>
        <translation>새 대화</translation>
    </message>
    <message>
        <source>Import and export</source>
        <translation>가져오기 및 내보내기</translation>
    </message>
    <message>
        <source>Search chats</source>
        <translation>대화 검색</translation>
    </message>
    <message>
        <source>Clear the search</source>
        <translation>검색어 지우기</translation>
    </message>
    <message>
        <source>Search names and messages</source>
        <translation>이름과 메시지 검색</translation>
    </message>
</context>
<context>
    <name>Suggestions</name>
    <message>
        <source>Write a Python function that checks if a number is prime.</source>
        <translation>소수인지 확인하는 is_prime 함수를 Python으로 써 주세요.</translation>
    </message>
    <message>
        <source>What shall we talk about?</source>
        <translation>무엇에 대해 이야기할까요?</translation>
    </message>
    <message>
        <source>Everything stays on this machine. The drafter guesses ahead; under each answer you see what it saved.</source>
        <translation>대화는 이 컴퓨터에만 남고, 드래프터의 효과는 답변마다 표시됩니다.</translation>
    </message>
    <message>
        <source>List some animals.</source>
        <translation>동물 몇 가지를 알려 주세요.</translation>
    </message>
    <message>
        <source>Tell me a short story about an animal.</source>
        <translation>동물에 대한 짧은 이야기를 써 주세요.</translation>
    </message>
    <message>
        <source>Hello! Who are you?</source>
        <translation>안녕하세요! 누구세요?</translation>
    </message>
    <message>
        <source>The demo pair shows how drafting works. What it says is not clever.</source>
        <translation>데모 모델 쌍은 드래프팅 방식을 보여 줍니다. 답변은 그다지 똑똑하지 않습니다.</translation>
    </message>
    <message>
        <source>Download {name} ({size})</source>
        <translation>{name} 다운로드({size})</translation>
    </message>
    <message>
        <source>Download Gemma 4</source>
        <translation>Gemma 4 다운로드</translation>
    </message>
</context>
<context>
    <name>Transcript</name>
    <message>
        <source>Working …</source>
        <translation>작업 중…</translation>
    </message>
    <message>
        <source>The answer failed: {reason}</source>
        <translation>답변 실패: {reason}</translation>
    </message>
    <message>
        <source>The answer is finished: {text}</source>
        <translation>답변 완료: {text}</translation>
    </message>
    <message>
        <source>Copied</source>
        <translation>복사됨</translation>
    </message>
    <message>
        <source>Conversation</source>
        <translation>대화</translation>
    </message>
    <message>
        <source>Jump to the end</source>
        <translation>맨 끝으로 이동</translation>
    </message>
    <message numerus="yes">
        <source>%n older message(s) did not fit in the context.</source>
        <translation>
            <numerusform>이전 메시지 %n개가 컨텍스트에 들어가지 않았습니다.</numerusform>
        </translation>
    </message>
    <message numerus="yes">
        <source>%n token(s)</source>
        <translation>
            <numerusform>%n토큰</numerusform>
        </translation>
    </message>
    <message>
        <source>[Image: {alt} – not loaded]</source>
        <translation>[이미지: {alt} – 불러오지 않음]</translation>
    </message>
    <message>
        <source>[Image – not loaded]</source>
        <translation>[이미지 – 불러오지 않음]</translation>
    </message>
    <message>
        <source>Copy selection</source>
        <translation>선택 영역 복사</translation>
    </message>
    <message>
        <source>Copy link address</source>
        <translation>링크 주소 복사</translation>
    </message>
    <message>
        <source>Copy code</source>
        <translation>코드 복사</translation>
    </message>
    <message>
        <source>Copy as text</source>
        <translation>텍스트로 복사</translation>
    </message>
    <message>
        <source>Copy as Markdown</source>
        <translation>Markdown으로 복사</translation>
    </message>
    <message>
        <source>Edit</source>
        <translation>편집</translation>
    </message>
    <message>
        <source>Answer again</source>
        <translation>다시 답변</translation>
    </message>
    <message>
        <source>Show or hide the thought</source>
        <translation>생각 표시/숨기기</translation>
    </message>
    <message>
        <source>What the figures mean</source>
        <translation>측정값 설명</translation>
    </message>
    <message>
        <source>Try without the drafter</source>
        <translation>드래프터 없이 시도</translation>
    </message>
    <message>
        <source>Try with a smaller context</source>
        <translation>더 작은 컨텍스트로 시도</translation>
    </message>
    <message>
        <source>Previous version</source>
        <translation>이전 버전</translation>
    </message>
    <message>
        <source>Next version</source>
        <translation>다음 버전</translation>
    </message>
    <message>
        <source>Select all</source>
        <translation>모두 선택</translation>
    </message>
    <message>
        <source>You said:</source>
        <translation>나:</translation>
    </message>
    <message>
        <source>Answer:</source>
        <translation>답변:</translation>
    </message>
    <message>
        <source>Show less</source>
        <translation>접기</translation>
    </message>
    <message>
        <source>Show all ({number} characters)</source>
        <translation>모두 보기({number}자)</translation>
    </message>
    <message>
        <source>Thinking …</source>
        <translation>생각하는 중…</translation>
    </message>
    <message>
        <source>Thought</source>
        <translation>생각</translation>
    </message>
    <message>
        <source>Thought for {time}</source>
        <translation>{time} 동안 생각함</translation>
    </message>
    <message>
        <source>Hide the thought</source>
        <translation>생각 숨기기</translation>
    </message>
    <message>
        <source>Show the thought</source>
        <translation>생각 보기</translation>
    </message>
    <message>
        <source>Stopped.</source>
        <translation>중지되었습니다.</translation>
    </message>
    <message>
        <source>The answer reached its longest length and ends here.</source>
        <translation>답변이 최대 길이에 도달하여 여기서 끝났습니다.</translation>
    </message>
    <message>
        <source>The context is full; the answer ends here.</source>
        <translation>컨텍스트가 가득 차서 답변이 여기서 끝났습니다.</translation>
    </message>
    <message>
        <source>Tandem ended while this answer was being written.</source>
        <translation>이 답변을 작성하는 중에 Tandem이 종료되었습니다.</translation>
    </message>
    <message>
        <source>The answer is empty; all that came is in the thought.</source>
        <translation>답변이 비어 있습니다. 나온 내용은 모두 생각에 있습니다.</translation>
    </message>
    <message>
        <source>The answer is empty.</source>
        <translation>답변이 비어 있습니다.</translation>
    </message>
    <message>
        <source>The answer failed.</source>
        <translation>답변하지 못했습니다.</translation>
    </message>
    <message>
        <source>Try again</source>
        <translation>다시 시도</translation>
    </message>
    <message>
        <source>Copy</source>
        <translation>복사</translation>
    </message>
    <message>
        <source>Show earlier messages</source>
        <translation>이전 메시지 보기</translation>
    </message>
    <message>
        <source>Show later messages</source>
        <translation>이후 메시지 보기</translation>
    </message>
    <message>
        <source>code</source>
        <translation>코드</translation>
    </message>
    <message>
        <source>Copy this code</source>
        <translation>이 코드 복사</translation>
    </message>
    <message>
        <source>Edit the message</source>
        <translation>메시지 편집</translation>
    </message>
</context>
<context>
    <name>WelcomePage</name>
    <message>
        <source>Welcome to Tandem</source>
        <translation>Tandem에 오신 것을 환영합니다</translation>
    </message>
    <message>
        <source>Try the demo</source>
        <translation>데모 사용해 보기</translation>
    </message>
    <message>
        <source>Use files I have…</source>
        <translation>내 파일 사용…</translation>
    </message>
    <message>
        <source>Looking at what this machine can run…</source>
        <translation>이 컴퓨터에서 무엇을 실행할 수 있는지 확인하는 중…</translation>
    </message>
    <message>
        <source>This machine can run {name}.</source>
        <translation>이 컴퓨터에서 {name} 모델을 실행할 수 있습니다.</translation>
    </message>
    <message>
        <source>This machine has too little memory for Gemma 4; the demo pair runs.</source>
        <translation>이 컴퓨터는 Gemma 4를 실행하기에 메모리가 부족하지만 데모 모델 쌍은 실행할 수 있습니다.</translation>
    </message>
    <message numerus="yes">
        <source>{cpu} · %n CPU(s) · {free} of {total} memory free</source>
        <translation>
            <numerusform>{cpu} · CPU %n개 · 메모리 {total} 중 {free} 사용 가능</numerusform>
        </translation>
    </message>
    <message>
        <source>Gemma 4 on your own machine, with a small drafter that guesses ahead and makes it faster. What you write stays on this machine.</source>
        <translation>Gemma 4를 내 컴퓨터에서 실행하세요. 작은 드래프터가 다음 내용을 미리 추측해 더 빠르게 답변합니다. 입력한 내용은 이 컴퓨터에만 남습니다.</translation>
    </message>
    <message>
        <source>A download comes from Hugging Face, needs no account, is checked, and can be paused at any time. The demo pair is built in: it shows how a drafter works, and is not clever.</source>
        <translation>모델은 Hugging Face에서 다운로드합니다. 계정이 필요 없고, 받은 파일이 올바른지 확인하며, 언제든지 일시 중지할 수 있습니다. 데모 모델 쌍은 Tandem에 포함되어 있습니다. 드래프터의 작동 방식을 보여 주기 위한 것으로, 답변은 그다지 똑똑하지 않습니다.</translation>
    </message>
    <message>
        <source>Two files, {weights} in all.</source>
        <translation>파일 2개, 모두 {weights}</translation>
    </message>
    <message>
        <source>Download {name} ({size})</source>
        <translation>{name} 다운로드({size})</translation>
    </message>
    <message>
        <source>Download this one</source>
        <translation>이 모델 다운로드</translation>
    </message>
    <message>
        <source>Open settings</source>
        <translation>설정 열기</translation>
    </message>
    <message>
        <source>{variable} is set: Tandem opens no connection and downloads nothing.</source>
        <translation>환경 변수 {variable} 설정에 따라 Tandem은 네트워크에 연결하지 않으며 아무것도 다운로드하지 않습니다.</translation>
    </message>
    <message>
        <source>Use {name}</source>
        <translation>{name} 사용</translation>
    </message>
    <message>
        <source>Download Gemma 4</source>
        <translation>Gemma 4 다운로드</translation>
    </message>
</context>
</TS>
