#include "lab/link_option.hpp"

#include "stages/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

TEST_CASE("an emulated link is read with its units", "[lab]") {
  struct Case {
    std::string text;
    double bandwidth, latency;
  };
  for (const Case& each : {Case{"bandwidth=1GB/s,latency=20us", 1e9, 20e-6},
                           Case{"latency=1.5ms,bandwidth=100MiB/s", 100.0 * 0x1p20, 1.5e-3},
                           Case{"bandwidth=10Gbit/s", 1.25e9, 0}, Case{"latency=300ns", 0, 300e-9},
                           Case{"latency=0s,bandwidth=5000B/s", 5000, 0}}) {
    INFO(each.text);
    const Link link = parse_link(each.text);
    CHECK(link.bandwidth == Approx(each.bandwidth));
    CHECK(link.latency == Approx(each.latency));
  }
  CHECK(to_string(Link{}) == "none");
  CHECK(to_string(parse_link("bandwidth=1GB/s,latency=20us")) ==
        "bandwidth=1e+09B/s,latency=2e-05s");
}

TEST_CASE("a link that is none is refused with the part, the reason and an example", "[lab]") {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"", "'' is neither bandwidth=... nor latency=..."},
           {"fast", "'fast' is neither"},
           {"bandwidth=1GB/s,jitter=3us", "'jitter=3us' is neither"},
           {"bandwidth=1GB/s,", "'' is neither"},
           {"bandwidth", "a bandwidth ends in /s"},
           {"bandwidth=1GB", "a bandwidth ends in /s"},
           {"bandwidth=/s", "a bandwidth ends in /s"},
           {"bandwidth=fast/s", "'fast' is not a number with a unit"},
           {"bandwidth=0GB/s", "at least one byte"},
           {"bandwidth=-1GB/s", "'-1GB' is not a number with a unit"},
           {"bandwidth=1G/s", "G could be GB"},
           {"bandwidth=1GB/s,bandwidth=2GB/s", "it has bandwidth twice"},
           {"latency=20", "a latency is in ns, us, ms or s, not in ''"},
           {"latency=20min", "not in 'min'"},
           {"latency=-1us", "'-1us' is not a number with a unit"},
           {"latency=nans", "'nans' is not a number with a unit"},
           {"latency=2000s", "at most a minute"}}) {
    INFO(text);
    const auto error = thrown_by([&, given = text] { parse_link(given); });
    REQUIRE(error);
    INFO(error->what());
    CHECK(error->code() == Code::usage);
    CHECK(contains(error->what(), "--link"));
    CHECK(contains(error->what(), why));
  }
}

}  // namespace
}  // namespace zerolab
