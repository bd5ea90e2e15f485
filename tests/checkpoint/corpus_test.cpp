// What a fuzzer begins with (tests/fuzz/corpus), and what it has found: one thing is wrong in each.

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <string>

#include "stages/base/read_file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/fuzz_input.hpp"
#include "tests/support/thrown.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

/// What is said of each; "" if it is accepted.
const std::map<std::string, std::string>& expected() {
  static const std::map<std::string, std::string> reasons{
      {"header_good", ""},
      {"header_empty", ""},
      {"header_no_elements", ""},
      {"header_a_list", "the header is no JSON object"},
      {"header_data_cut", "its tensors have 74 bytes, and 73 lie behind the header"},
      {"header_file_of_3_bytes", "has 3 bytes, which is no safetensors file"},
      {"header_gap", "tensor 'b' begins at byte 61, away from what is before it"},
      {"header_key_twice", "the header has 'a' twice"},
      {"header_length_cut", "the header is no JSON"},
      {"header_length_of_2_to_the_60", "its header claims 1152921504606846976 bytes"},
      {"header_length_of_2_to_the_64", "its header claims 18446744073709551615 bytes"},
      {"header_metadata_is_number", "__metadata__ has 'format', which is no string"},
      {"header_nested_deeply", "more than 100 levels"},
      {"header_no_json", "the header is no JSON"},
      {"header_offset_beyond_64_bits", "in its data_offsets, which is no count"},
      {"header_offset_negative", "has -60 in its data_offsets, which is no count"},
      {"header_offsets_backwards", "tensor 'b' ends before it begins"},
      {"header_overlap", "tensor 'b' begins at byte 59, inside of what is before it"},
      {"header_shape_is_text", "has a shape that is no list"},
      {"header_shape_missing", "has no shape"},
      {"header_shape_overflows", "has a shape beyond all bounds"},
      {"header_unknown_dtype", "has the unknown dtype 'F33'"},
      {"manifest_good", ""},
      {"manifest_key_twice", ""},  // the harness writes it again, with one of them
      {"manifest_cut", "it is no JSON"},
      {"manifest_from_the_future", "version 2"},
      {"manifest_hashes_cut", "is cut"},
      {"manifest_moments_reserved", "has what no optimizer keeps"},
      {"manifest_nested_deeply", "more than 100 levels"},
      {"manifest_no_shards", "'world_size' is not the number of shards"},
      {"manifest_of_another_program", "no manifest of a checkpoint"},
      {"manifest_parameter_missing", "'parameters' is missing"},
      {"manifest_scale_zero", "is no scale"},
      {"manifest_shape_overflows", "is beyond all bounds"},
      {"manifest_shapes_overflow_together", "is beyond all bounds"},
      {"manifest_shard_elsewhere", "not the file of rank 0"},
      {"manifest_shard_of_2_to_the_60", "has not one checksum for every block"},
      {"manifest_shard_too_short", "and what is in it needs"},
      {"manifest_slice_backwards", "is empty, or ends before it begins"},
      {"manifest_slice_beyond_the_end", "its shards have 4 elements of 'a.bias' [3], which has 3"},
      {"manifest_slice_of_nothing", "is no parameter of the model"},
      {"manifest_slice_twice", "comes twice"},
      {"manifest_slices_overlap", "elements 8 to 9 of 'a.weight' are in more than one shard"},
      {"manifest_slices_with_a_gap", "elements 9 to 10 of 'a.weight' are in no shard"},
      {"manifest_steps_negative", "no whole number from 0"},
      {"manifest_tied_to_nothing", "which is no second name of a parameter"},
  };
  return reasons;
}

}  // namespace

TEST_CASE("however much is wrong in a header or a manifest, its message is a short line") {
  const std::string much(1'000'000, 'x');
  for (const std::string& json :
       {much, "{\"" + much, "{\"" + much + "\": 1}", "{\"a\": {\"dtype\": \"" + much + "\"}}",
        "{\"a\": {\"dtype\": \"F32\", \"shape\": [\"" + much + "\"]}}",
        "{\"__metadata__\": {\"" + much + "\": 1}}", "{\"format\": \"" + much + "\"}",
        "{\"format\": \"zerolab checkpoint\", \"version\": \"" + much + "\"}"}) {
    for (const std::string& kind :
         {fmt::format("header {} {}\n", json.size(), json.size() + 8), std::string("manifest\n")}) {
      const auto error = thrown_by([&] { read_fuzz_input(kind + json); });
      INFO(kind << json.substr(0, 60));
      REQUIRE(error);
      CHECK(error->exit_status() == 6);
      CHECK(error->what_happened().size() < 400);
      CHECK_FALSE(contains(error->what_happened(), "\n"));
    }
  }
}

TEST_CASE("each input of the fuzzer's corpus is refused for what is wrong with it") {
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ZEROLAB_TESTS "/fuzz/corpus")) {
    const std::string name = entry.path().filename();
    INFO(name);
    REQUIRE(expected().count(name) == 1);
    const std::string& reason = expected().at(name);
    const std::string input = read_file(entry.path()).value();
    const auto error = thrown_by([&] { read_fuzz_input(input); });
    INFO((error ? error->what() : "accepted"));
    CHECK(error.has_value() == !reason.empty());
    CHECK((!error || (error->exit_status() == 6 && contains(error->what(), reason))));
    ++seen;
  }
  CHECK(seen == static_cast<int>(expected().size()));
}
