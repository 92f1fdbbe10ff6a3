# Read by CMake just after llama.cpp's own project(): llama-cpp-python forces llama.cpp's "common" library on, which
# only llama.cpp's own programs use. Without it the engine compiles in a sixth of the time.
set(LLAMA_BUILD_COMMON OFF CACHE BOOL "" FORCE)
