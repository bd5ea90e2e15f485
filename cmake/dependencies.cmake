# Libraries, all of them Debian packages (README, "What it needs").

include(libraries)  # those of the library itself, which its users need as well
find_package(CLI11 QUIET)
zerolab_need(CLI11_FOUND libcli11-dev)
find_path(MUPARSER_INCLUDE_DIR muParser.h)
find_library(MUPARSER_LIBRARY muparser)
zerolab_need(MUPARSER_LIBRARY libmuparser-dev)
find_path(XXHASH_INCLUDE_DIR xxhash.h)  # used header-only
zerolab_need(XXHASH_INCLUDE_DIR libxxhash-dev)
# Charts of the report page.
find_file(ZEROLAB_D3 d3.min.js PATHS /usr/share/nodejs/d3/dist NO_DEFAULT_PATH)
zerolab_need(ZEROLAB_D3 node-d3)
find_path(GRAPHVIZ_INCLUDE_DIR graphviz/gvc.h)
find_library(GVC_LIBRARY gvc)
find_library(CGRAPH_LIBRARY cgraph)
zerolab_need(GRAPHVIZ_INCLUDE_DIR libgraphviz-dev)
zerolab_need(GVC_LIBRARY libgraphviz-dev)
zerolab_need(CGRAPH_LIBRARY libgraphviz-dev)
list(REMOVE_DUPLICATES zerolab_missing)
mark_as_advanced(ZEROLAB_D3 GRAPHVIZ_INCLUDE_DIR GVC_LIBRARY CGRAPH_LIBRARY)
if(zerolab_missing)
  list(JOIN zerolab_missing " " packages)
  message(FATAL_ERROR "zerolab lacks ${packages} (names of Debian packages): "
    "install them, or run lab/setup, which does")
endif()

find_package(Doxygen COMPONENTS dot QUIET)  # doxygen, graphviz: the target docs, not needed to build

foreach(part MAJOR MINOR PATCH)
  file(STRINGS ${ZEROLAB_DNNL_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h line
    REGEX "define DNNL_VERSION_${part}")
  string(REGEX MATCH "[0-9]+" DNNL_${part} "${line}")
endforeach()
set(DNNL_VERSION ${DNNL_MAJOR}.${DNNL_MINOR}.${DNNL_PATCH})
