#include "stages/base/nearest.hpp"

#include "tests/support/catch.hpp"

namespace zerolab {
namespace {

TEST_CASE("two neighbours swapped are one mistake, as is a letter changed, added or dropped",
          "[base]") {
  CHECK(edit_distance("bucket", "bucket") == 0);
  CHECK(edit_distance("bukcet", "bucket") == 1);
  CHECK(edit_distance("backet", "bucket") == 1);
  CHECK(edit_distance("buckets", "bucket") == 1);
  CHECK(edit_distance("bcket", "bucket") == 1);
  CHECK(edit_distance("", "abc") == 3);
}

TEST_CASE("a guess is made only where one is near", "[base]") {
  const std::vector<std::string> known{"stage", "overlap_comm", "reduce_bucket_size"};
  CHECK(nearest("reduce_bukcet_size", known) == "reduce_bucket_size");
  CHECK(nearest("overlap", {"overlaps"}) == "overlaps");
  CHECK(nearest("learning_rate", known) == "");
  CHECK(did_you_mean("stgae", known) == "; did you mean stage?");
  CHECK(did_you_mean("zzz", known) == "");
}

}  // namespace
}  // namespace zerolab
