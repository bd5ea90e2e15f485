#include "lab/paragraph.hpp"

#include "tests/support/catch.hpp"

namespace zerolab {
namespace {

TEST_CASE("a paragraph is wrapped at words and indented", "[lab]") {
  CHECK(wrapped("one two three\nfour", 11, 2) == "  one two\n  three\n  four\n");
  CHECK(wrapped("one\n\n\ntwo", 20, 0) == "one\n\n\ntwo\n");
  CHECK(wrapped("", 20, 2).empty());
}

TEST_CASE("a word longer than the line stands alone, and columns are counted, not bytes", "[lab]") {
  CHECK(wrapped("a longerthanall b", 6, 0) == "a\nlongerthanall\nb\n");
  CHECK(wrapped("äöü äöü", 7, 0) == "äöü äöü\n");
}

TEST_CASE("what is indented keeps its lines", "[lab]") {
  CHECK(wrapped("Say\n\n    zerolab  fail\n    --list\n\nthen", 30, 2) ==
        "  Say\n\n      zerolab  fail\n      --list\n\n  then\n");
}

}  // namespace
}  // namespace zerolab
