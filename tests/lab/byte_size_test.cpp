#include "lab/byte_size.hpp"

#include "stages/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

TEST_CASE("amounts of memory are read with decimal and binary units", "[lab]") {
  for (const auto& [text, bytes] :
       std::vector<std::pair<std::string, Index>>{{"1", 1},
                                                  {"4096", 4096},
                                                  {"12B", 12},
                                                  {"64MiB", 64 << 20},
                                                  {"1GB", 1'000'000'000},
                                                  {"1.5 KiB", 1536},
                                                  {"2kb", 2000},
                                                  {"1tib", Index{1} << 40}}) {
    INFO(text);
    CHECK(parse_byte_size(text, "--device-memory") == bytes);
  }
}

TEST_CASE("an amount that is none is refused with the flag, the text and the units", "[lab]") {
  for (const auto& bad : std::vector<std::pair<std::string, std::string>>{
           {"64M", "M could be MB (powers of 1000) or MiB (powers of 1024)"},
           {"64 g", "G could be GB"},
           {"64XB", "the unit xb is not known"},
           {"lots", "not an amount"},
           {"", "not an amount"},
           {"1.2.3MB", "not an amount"},
           {"-1MB", "not an amount"},
           {"0", "at least one byte"},
           {"99999999TiB", "not beyond"}}) {
    const std::string& text = bad.first;
    const auto error = thrown_by([&] { parse_byte_size(text, "--device-memory"); });
    INFO(text);
    REQUIRE(error);
    CHECK(error->code() == Code::usage);
    CHECK(contains(error->what(), "--device-memory " + text));
    CHECK(contains(error->what(), bad.second));
    CHECK(contains(error->way_out(), "64MiB"));
  }
}

}  // namespace
}  // namespace zerolab
