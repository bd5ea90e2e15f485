# Libraries, all of them Debian packages (README, "What it needs").

find_package(Threads REQUIRED)
find_package(MPI REQUIRED COMPONENTS C)
find_package(dnnl REQUIRED)           # libdnnl-dev, 2.6 or 3.x
find_package(nlohmann_json REQUIRED)  # nlohmann-json3-dev
find_package(CLI11 REQUIRED)          # libcli11-dev
find_package(fmt REQUIRED)            # libfmt-dev
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)  # libxxhash-dev, used header-only

# oneDNN's OpenMP runtime: only its thread count is set, so no compiler support is needed.
find_library(ZEROLAB_GOMP NAMES gomp libgomp.so.1 REQUIRED)
