# Read by CMake just after llama.cpp's own project().

# llama-cpp-python forces llama.cpp's "common" library on, which only llama.cpp's own programs use. Without it the engine
# compiles in a sixth of the time.
set(LLAMA_BUILD_COMMON OFF CACHE BOOL "" FORCE)

# A verify pass must score a token as plain decoding does, bit for bit, or the text could depend on the drafter and on the
# number of threads. llama.cpp computes the attention of a single row over 512 or more cells in as many parts as there are
# threads, and that of several rows in one; the sums differ in the last bits. The parts are left out: a row's heads (8 in
# E2B) keep the threads busy.
set(_ops "${CMAKE_CURRENT_SOURCE_DIR}/ggml/src/ggml-cpu/ops.cpp")
set(_split "const bool use_split_kv_path = !use_ref")
set(_whole "const bool use_split_kv_path = false && !use_ref")
file(READ "${_ops}" _text)
string(REPLACE "${_split}" "${_whole}" _text "${_text}")
string(FIND "${_text}" "${_whole}" _found)
if(_found EQUAL -1)
    message(FATAL_ERROR "llama.cpp's attention has changed: look at use_split_kv_path in ggml-cpu/ops.cpp")
endif()
file(WRITE "${_ops}" "${_text}")
