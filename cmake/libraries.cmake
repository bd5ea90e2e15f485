# What the library is linked with. The build reads this, and the installed package does, so both look
# for the same things in the same way. What is not there is collected in zerolab_missing by the name
# of its Debian package, and the reader says so, all at once.

set(zerolab_missing)
macro(zerolab_need found package)
  if(NOT ${found})
    list(APPEND zerolab_missing ${package})
  endif()
endmacro()

find_package(Threads QUIET)
zerolab_need(Threads_FOUND libc6-dev)
find_package(fmt QUIET)
zerolab_need(fmt_FOUND libfmt-dev)
find_package(nlohmann_json QUIET)
zerolab_need(nlohmann_json_FOUND nlohmann-json3-dev)

# MPICH by its own name, since another MPI may be what "mpicxx" means on this machine.
find_program(MPI_CXX_COMPILER NAMES mpicxx.mpich mpicxx)
find_program(MPIEXEC_EXECUTABLE NAMES mpiexec.mpich mpiexec.hydra mpiexec)
find_package(MPI QUIET COMPONENTS CXX)
zerolab_need(MPI_CXX_FOUND libmpich-dev)

# oneDNN 2.6 or 3.x. Debian's dnnl-config.cmake demands OpenCL, which nothing here uses, so the
# library is found by name. Of its OpenMP runtime only the thread count is set, so no compiler
# support is needed.
find_library(ZEROLAB_DNNL dnnl)
find_path(ZEROLAB_DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(ZEROLAB_GOMP NAMES gomp libgomp.so.1)
zerolab_need(ZEROLAB_DNNL libdnnl-dev)
zerolab_need(ZEROLAB_DNNL_INCLUDE_DIR libdnnl-dev)
zerolab_need(ZEROLAB_GOMP libgomp1)
list(REMOVE_DUPLICATES zerolab_missing)
mark_as_advanced(MPI_CXX_COMPILER MPIEXEC_EXECUTABLE
  ZEROLAB_DNNL ZEROLAB_DNNL_INCLUDE_DIR ZEROLAB_GOMP)

if(NOT zerolab_missing AND NOT TARGET zerolab::onednn)
  add_library(zerolab::onednn INTERFACE IMPORTED)
  target_include_directories(zerolab::onednn SYSTEM INTERFACE ${ZEROLAB_DNNL_INCLUDE_DIR})
  target_link_libraries(zerolab::onednn INTERFACE ${ZEROLAB_DNNL} ${ZEROLAB_GOMP})
endif()
