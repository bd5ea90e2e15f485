#include "visualize/diagram/partition.hpp"

#include <fmt/format.h>

#include "stages/partition/layout.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/thrown.hpp"
#include "tests/support/written_run.hpp"
#include "tests/support/xml.hpp"
#include "visualize/diagram/render.hpp"

namespace zerolab::test {
namespace {

using diagram::Part;

/// Elements of a parameter that a rank owns, as the map has them.
Range owned(const std::vector<Part>& parts, int rank) {
  for (const Part& part : parts) {
    if (part.owner == static_cast<log::Count>(rank) && !part.padding) {
      return {static_cast<Index>(part.begin), static_cast<Index>(part.end)};
    }
  }
  return {};
}

TEST_CASE("a map has the pieces that stage 3 cuts, and the slices of the other stages",
          "[diagram]") {
  for (const int ranks : {1, 3, 4}) {
    for (const int stage : {1, 2, 3}) {
      LoggedRun logged = run_of_stage(stage, ranks);
      logged.run["parameters"][2]["requires_grad"] = false;
      const WrittenRun written(logged);
      const log::Run& run = written.run.run;
      std::vector<Index> trainable;
      for (const log::Parameter& each : run.parameters) {
        trainable.push_back(each.trainable ? static_cast<Index>(each.numel) : 0);
      }
      const FlatLayout flat(trainable, ranks);
      for (std::size_t i = 0; i < run.parameters.size(); ++i) {
        const auto numel = static_cast<Index>(run.parameters[i].numel);
        const std::vector<Part> parts = diagram::parts_of(run, i);
        const Range here = flat.parameter(static_cast<Index>(i));
        for (int rank = 0; rank < ranks; ++rank) {
          INFO("stage " << stage << ", parameter " << i << ", rank " << rank << " of " << ranks);
          Range expected = PieceLayout{numel, ranks}.owned(rank);
          if (stage < 3) {
            const Range slice = intersect(here, flat.slice(rank));
            expected = {slice.begin - here.begin, slice.end - here.begin};
          }
          if (expected.size() == 0) expected = {};
          CHECK(owned(parts, rank) == expected);
        }
        Index all = 0, padding = 0;
        for (const Part& part : parts) {
          (part.padding ? padding : all) += static_cast<Index>(part.end - part.begin);
        }
        CHECK(all == (stage < 3 && !run.parameters[i].trainable ? 0 : numel));
        CHECK(padding == (stage < 3 ? 0 : PieceLayout{numel, ranks}.padded() - numel));
      }
    }
  }
}

TEST_CASE("the partitions of a fixed run of each stage are drawn as the golden graphs",
          "[diagram]") {
  for (const int stage : {0, 1, 2, 3}) {
    const WrittenRun written(run_of_stage(stage, 4));
    const std::string dot = diagram::partition_dot({written.run});
    CHECK(difference_from_golden(dot, fmt::format("partition-stage{}.dot", stage)) == "");
    const std::string svg = diagram::render(dot, "svg");
    CHECK(fault_in_xml(svg) == "");
    CHECK(contains(svg, "class=\"node padding\"") == (stage > 0));
  }
}

TEST_CASE("a map of more ranks than it has room for is refused", "[diagram]") {
  LoggedRun logged = run_of_stage(3);
  logged.summary = nullptr;
  for (const int ranks : {64, 65}) {
    logged.run["world_size"] = ranks;
    const WrittenRun written(logged);
    if (ranks == 64) {
      CHECK(fault_in_xml(diagram::render(diagram::partition_dot({written.run}), "svg")) == "");
    } else {
      CHECK_THROWS_AS(diagram::partition_dot({written.run}), log::Unreadable);
    }
  }
}

}  // namespace
}  // namespace zerolab::test
