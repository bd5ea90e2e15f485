# find_package(zerolab): the target zerolab::stages (docs/extending.md).
include(${CMAKE_CURRENT_LIST_DIR}/libraries.cmake)
if(zerolab_missing)
  list(JOIN zerolab_missing " " zerolab_NOT_FOUND_MESSAGE)
  string(PREPEND zerolab_NOT_FOUND_MESSAGE "zerolab is there, but these Debian packages are not: ")
  set(zerolab_FOUND FALSE)
  return()
endif()
include(${CMAKE_CURRENT_LIST_DIR}/zerolabTargets.cmake)
