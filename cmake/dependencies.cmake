# Libraries, all of them Debian packages (README, "What it needs").

find_package(Threads REQUIRED)
# MPICH by its own name, since another MPI may be what "mpicxx" means on this machine.
find_program(MPI_CXX_COMPILER NAMES mpicxx.mpich mpicxx)
find_program(MPIEXEC_EXECUTABLE NAMES mpiexec.mpich mpiexec.hydra mpiexec)
find_package(MPI REQUIRED COMPONENTS CXX)
find_package(nlohmann_json REQUIRED)  # nlohmann-json3-dev
find_package(CLI11 REQUIRED)          # libcli11-dev
find_package(fmt REQUIRED)            # libfmt-dev
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)  # libxxhash-dev, used header-only

find_package(Doxygen COMPONENTS dot QUIET)  # doxygen, graphviz: the target docs, not needed to build

# oneDNN's OpenMP runtime: only its thread count is set, so no compiler support is needed.
find_library(ZEROLAB_GOMP NAMES gomp libgomp.so.1 REQUIRED)

# oneDNN (libdnnl-dev, 2.6 or 3.x). Debian's dnnl-config.cmake demands OpenCL, which nothing here
# uses, so the library is found by name.
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
foreach(part MAJOR MINOR PATCH)
  file(STRINGS ${DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h line REGEX "define DNNL_VERSION_${part}")
  string(REGEX MATCH "[0-9]+" DNNL_${part} "${line}")
endforeach()
set(DNNL_VERSION ${DNNL_MAJOR}.${DNNL_MINOR}.${DNNL_PATCH})
add_library(dnnl_library INTERFACE)
target_include_directories(dnnl_library SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
target_link_libraries(dnnl_library INTERFACE ${DNNL_LIBRARY})
