# cmake --install: the program, the library with its headers, the guides, and what find_package(zerolab)
# reads (docs/extending.md).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/zerolab)
install(TARGETS zerolab)
install(TARGETS zerolab_stages zerolab_arithmetic EXPORT zerolabTargets)
# Not those that speak to MPI and oneDNN: users reach both through Communicator and Device.
install(DIRECTORY stages DESTINATION include/zerolab FILES_MATCHING PATTERN *.hpp
  PATTERN comm/mpi EXCLUDE
  REGEX "comm/rank_outcome.hpp|cpu/(onednn|calls|primitives).hpp" EXCLUDE)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY lab/failures DESTINATION ${CMAKE_INSTALL_DATADIR}/zerolab
  FILES_MATCHING PATTERN *.md PATTERN mistakes EXCLUDE PATTERN wrappers EXCLUDE)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/guides)

set_target_properties(zerolab_arithmetic PROPERTIES EXPORT_NAME arithmetic)
install(EXPORT zerolabTargets NAMESPACE zerolab:: DESTINATION ${package_dir})
# Before 1.0 a minor version may change what users see.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/zerolabConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES cmake/zerolabConfig.cmake cmake/libraries.cmake
  ${PROJECT_BINARY_DIR}/zerolabConfigVersion.cmake DESTINATION ${package_dir})
