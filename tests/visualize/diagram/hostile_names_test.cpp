// Names in a log may be anything: no picture lets them out of their label.
#include <fmt/format.h>

#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/written_run.hpp"
#include "tests/support/xml.hpp"
#include "visualize/diagram/modules.hpp"
#include "visualize/diagram/partition.hpp"
#include "visualize/diagram/render.hpp"
#include "visualize/diagram/sequence.hpp"
#include "visualize/diagram/states.hpp"

namespace zerolab::test {
namespace {

std::vector<std::string> hostile_names() {
  return {
      "<script>alert(1)</script>",
      "</td></tr></table>>]; evil -> node [label=\"x\"]",
      "\"quotes\" and 'more'",
      "back\\slash\\N\\G\\",
      "line\nbreak\ttab\r",
      std::string("nul\0inside", 10),
      "\x01\x1b[31mred\x7f",
      "&amp; &#0; &nbsp; ]]>",
      "\u202Eright to left \U0001F600 \uFFFF",
      "--> <!-- <?xml ?>",
      std::string(10'000, 'x'),
      std::string(5'000, '<'),
      " ",
  };
}

TEST_CASE("hostile names in logs stay in their labels, in every picture", "[diagram]") {
  const LoggedRun good = run_of_stage(3);
  for (const std::string& name : hostile_names()) {
    INFO(name.substr(0, 60));
    LoggedRun logged = good;
    rename(logged, "embedding", name + "!");
    rename(logged, "layers.0", name);
    for (auto& module : logged.run["modules"]) {
      module["class"] = name;
      if (module["name"] == "layers.1") module["external"].push_back(name + "!.weight");
    }
    const WrittenRun written(logged);
    diagram::Observed seen = diagram::observe(written.run);
    seen.name = name;  // of the folder
    seen.remarks = {name};
    for (const std::string& dot :
         {states_dot(seen), states_diff_dot(seen, seen), diagram::modules_dot(written.run.run),
          diagram::partition_dot({written.run}), diagram::sequence_dot({written.run})}) {
      CHECK(dot.find('\0') == std::string::npos);
      CHECK_FALSE(contains(dot, std::string(200, 'x')));
      const std::string svg = diagram::render(dot, "svg");
      CHECK(fault_in_xml(svg) == "");
      CHECK_FALSE(contains(svg, "<script"));
      CHECK_FALSE(contains(svg, "<title>evil"));
    }
  }
}

}  // namespace
}  // namespace zerolab::test
