#include "visualize/diagram/render.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <graphviz/gvc.h>

#include <algorithm>
#include <memory>

#ifdef ZEROLAB_LEAKS_ARE_REPORTED
#include <sanitizer/lsan_interface.h>

// fontconfig fills its caches in a thread of its own. The sanitizer looks for these very names.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
const char* __lsan_default_suppressions() { return "leak:libfontconfig\n"; }
const char* __lsan_default_options() { return "print_suppressions=0"; }
}
// NOLINTEND(readability-identifier-naming)
#endif

namespace zerolab::diagram {
namespace {

/// What libgvc says it keeps to itself: on standard error nobody could tell whose words they are.
class Quiet {
 public:
  Quiet() : before_(agseterr(AGMAX)) {}
  ~Quiet() { agseterr(before_); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  agerrlevel_t before_;
};

using Context = std::unique_ptr<GVC_t, decltype(&gvFreeContext)>;
using Graph = std::unique_ptr<Agraph_t, decltype(&agclose)>;

/// Where everything stands; it goes before the graph does.
class Layout {
 public:
  Layout(GVC_t* context, Agraph_t* graph) : context_(context), graph_(graph) {
    if (gvLayout(context_, graph_, "dot") != 0) throw Undrawable("libgvc has no layout 'dot'");
  }
  ~Layout() { gvFreeLayout(context_, graph_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;

  std::string drawn_as(const std::string& format) const {
    char* data = nullptr;
    unsigned int length = 0;
    if (gvRenderData(context_, graph_, format.c_str(), &data, &length) != 0 || data == nullptr) {
      throw Undrawable(fmt::format("the Graphviz of this machine writes no {}", format));
    }
    const std::unique_ptr<char, decltype(&gvFreeRenderData)> freed(data, gvFreeRenderData);
    return {data, length};
  }

 private:
  GVC_t* context_;
  Agraph_t* graph_;
};

}  // namespace

std::string render(const std::string& dot, const std::string& format) {
  if (std::find(kFormats.begin(), kFormats.end(), format) == kFormats.end()) {
    throw Undrawable(
        fmt::format("'{}' is no format of pictures; {} are", format, fmt::join(kFormats, ", ")));
  }
  if (format == "dot") return dot;
#ifdef ZEROLAB_LEAKS_ARE_REPORTED
  const __lsan::ScopedDisabler theirs;  // libgvc loses some of what it takes
#endif
  const Quiet quiet;
  const Context context(gvContext(), gvFreeContext);
  const Graph graph(agmemread(dot.c_str()), agclose);
  if (!graph) throw Undrawable("the graph is not in Graphviz's language");
  return Layout(context.get(), graph.get()).drawn_as(format);
}

}  // namespace zerolab::diagram
