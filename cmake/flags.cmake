# Every target of the project compiles with these; nothing else sets flags.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Test, Release or RelWithDebInfo" FORCE)
endif()
set(CMAKE_CXX_FLAGS_TEST "-O2")  # tests train: Debug takes too long, Release drops assertions
option(ZEROLAB_WERROR "Warnings are errors (on in CI)" OFF)
option(ZEROLAB_POISON "Fill tensor memory with NaN before it is written and after it is freed" OFF)
option(ZEROLAB_CHECK_COLLECTIVES "Make --check-collectives the default" OFF)
set(ZEROLAB_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them: address,undefined or thread")

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# What users of the library compile with too. Headers have arithmetic in them, and of an inline
# function that two files compile the linker keeps one: a user's copy, fused or reordered, would
# change the bits inside the library.
add_library(zerolab_arithmetic INTERFACE)
target_compile_features(zerolab_arithmetic INTERFACE cxx_std_20)
# A sum must not change its bits with the compiler's mood: fused only where the code says so.
target_compile_options(zerolab_arithmetic INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off> $<$<COMPILE_LANGUAGE:CXX>:-fno-fast-math>)

add_library(zerolab_flags INTERFACE)
target_link_libraries(zerolab_flags INTERFACE zerolab_arithmetic)
target_compile_options(zerolab_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wold-style-cast -Wcast-qual
  # Nobody reads errno after a square root; without this Adam's loop is not vectorised (same bits).
  -fno-math-errno
  # Assertions name their file from the root: nothing that is installed knows where it was built.
  -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=
  $<$<BOOL:${ZEROLAB_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 to 14 see overlaps and overflows inside std::string where there are none (GCC bug 105651
  # and its like).
  target_compile_options(zerolab_flags INTERFACE
    -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
if(ZEROLAB_POISON)
  target_compile_definitions(zerolab_flags INTERFACE ZEROLAB_POISON_MEMORY)
endif()
if(ZEROLAB_CHECK_COLLECTIVES)
  target_compile_definitions(zerolab_flags INTERFACE ZEROLAB_CHECK_COLLECTIVES)
endif()
if(ZEROLAB_SANITIZE)
  target_compile_options(zerolab_flags INTERFACE
    -fsanitize=${ZEROLAB_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(zerolab_flags INTERFACE -fsanitize=${ZEROLAB_SANITIZE})
endif()

# Headers that nearly every file reads, parsed once a target: it halves the build.
function(zerolab_precompile target)
  target_precompile_headers(${target} PRIVATE
    <algorithm> <chrono> <cstring> <filesystem> <functional> <map> <memory> <span> <string> <vector>
    <fmt/format.h> <nlohmann/json.hpp> ${ARGN})
endfunction()

find_program(ZEROLAB_CCACHE ccache)
if(ZEROLAB_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${ZEROLAB_CCACHE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(zerolab_flags INTERFACE -fpch-preprocess)  # what ccache needs for them
  endif()
endif()
