#include "visualize/diagram/render.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/xml.hpp"

namespace zerolab::test {
namespace {

const std::string kGraph = "digraph g { a -> b [label=<x &lt; y>] }";

std::string why_not(const std::string& dot, const std::string& format) {
  try {
    diagram::render(dot, format);
    return "";
  } catch (const diagram::Undrawable& undrawable) {
    return undrawable.what();
  }
}

TEST_CASE("a graph becomes a file of each format, and the same twice", "[diagram]") {
  CHECK(diagram::render(kGraph, "dot") == kGraph);
  const std::string svg = diagram::render(kGraph, "svg");
  CHECK(fault_in_xml(svg) == "");
  CHECK(contains(svg, "x &lt; y"));
  CHECK(diagram::render(kGraph, "svg") == svg);
  CHECK(diagram::render(kGraph, "png").substr(0, 8) == "\x89PNG\r\n\x1a\n");
  CHECK(diagram::render(kGraph, "pdf").substr(0, 5) == "%PDF-");
}

TEST_CASE("what cannot be drawn is refused, and says why", "[diagram]") {
  CHECK(why_not(kGraph, "jpg") == "'jpg' is no format of pictures; dot, svg, png, pdf are");
  CHECK(why_not("digraph { a -> ", "svg") == "the graph is not in Graphviz's language");
  CHECK(why_not("", "svg") == "the graph is not in Graphviz's language");
}

TEST_CASE("the check of XML finds what is not well-formed", "[diagram]") {
  CHECK(fault_in_xml("<?xml version=\"1.0\"?>\n<!-- c -->\n<a b=\"1\" c='&amp;'><d/>x</a>\n") ==
        "");
  for (const std::string bad :
       {"<a>", "<a></b>", "<a/><b/>", "<a b=1/>", "<a b=\"1\" b=\"2\"/>", "<a>&nbsp;</a>",
        "<a>\x01</a>", "<a><</a>", "x<a/>", "", "<a b=\"<\"/>", "<a><!-- x -- y --></a>"}) {
    INFO(bad);
    CHECK(fault_in_xml(bad) != "");
  }
}

}  // namespace
}  // namespace zerolab::test
