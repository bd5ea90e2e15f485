#include "lab/error_report.hpp"

#include "lab/wrap.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

const ErrorStyle kPipe;
const ErrorStyle kWatched{.columns = 40};
const ErrorStyle kColored{.columns = 40, .color = true};

TEST_CASE("a line is broken at spaces, and what is too long has a line of its own", "[lab]") {
  CHECK(wrapped("one two three", 7) == "one two\nthree");
  CHECK(wrapped("one two three", 8, "  ") == "one two\n  three");
  CHECK(wrapped("  one two", 5, "    ") == "  one\n    two");
  CHECK(wrapped("a verylongword b", 5) == "a\nverylongword\nb");
  CHECK(wrapped("→→→ →→→", 7) == "→→→ →→→");
  CHECK(wrapped("", 5).empty());
  CHECK(wrapped("   ", 5) == "   ");
}

TEST_CASE("in a pipe an error is its text, line for line", "[lab]") {
  const Error error(Code::out_of_memory, "rank 2 is out of memory\n  budget   7", "more; or less");
  CHECK(error_text(error, 2, kPipe) == "zerolab: " + std::string(error.what()) + '\n');
}

TEST_CASE("the rank is put before a message that names none, and is not said twice", "[lab]") {
  const auto text = [](const std::string& message, std::optional<int> rank) {
    return error_text(Error(Code::internal, message, ""), rank, kPipe);
  };
  CHECK(text("std::bad_alloc", 2) == "zerolab: rank 2: ZL101: std::bad_alloc\n");
  CHECK(text("std::bad_alloc", std::nullopt) == "zerolab: ZL101: std::bad_alloc\n");
  CHECK(text("module 'head' on rank 2 reads", 2) ==
        "zerolab: ZL101: module 'head' on rank 2 reads\n");
  CHECK(text("between ranks 1 and 2", 2) == "zerolab: ZL101: between ranks 1 and 2\n");
  CHECK(text("'low_rank 'is no rank", 2) == "zerolab: rank 2: ZL101: 'low_rank 'is no rank\n");
}

TEST_CASE("on a terminal lines are broken, lists are not, and each way out has a line", "[lab]") {
  const Error error(Code::out_of_memory,
                    "rank 0 is out of device memory in step 1, micro-step 0\n"
                    "    parameters              682240 of them all",
                    "a larger budget; or fewer sequences than there are; or more ranks");
  CHECK(error_text(error, 0, kWatched) ==
        "zerolab: ZL301: rank 0 is out of device\n"
        "    memory in step 1, micro-step 0\n"
        "    parameters              682240 of them all\n"
        "  way out:\n"
        "    a larger budget\n"
        "    or fewer sequences than there are\n"
        "    or more ranks\n"
        "  more: zerolab explain ZL301\n");
  CHECK(error_text(Error(Code::usage, "what", "way"), std::nullopt, kWatched) ==
        "zerolab: ZL201: what\n  way out: way\n  more: zerolab explain ZL201\n");
  CHECK(error_text(Error(Code::usage, "what", ""), std::nullopt, kWatched) ==
        "zerolab: ZL201: what\n  more: zerolab explain ZL201\n");
}

TEST_CASE("colours mark the code and the way out, and nothing else", "[lab]") {
  CHECK(error_text(Error(Code::internal, "what", "way"), 1, kColored) ==
        "zerolab: rank 1: \x1b[1m\x1b[31mZL101\x1b[0m: what\n  \x1b[1mway out:\x1b[0m way\n"
        "  more: zerolab explain ZL101\n");
  CHECK(error_text(Error(Code::internal, "what", ""), 1, kColored) ==
        "zerolab: rank 1: \x1b[1m\x1b[31mZL101\x1b[0m: what\n  more: zerolab explain ZL101\n");
}

TEST_CASE("a rank is to blame for what it alone did wrong", "[lab]") {
  const auto blamed = [](Code code) { return rank_to_blame(Error(code, "", ""), 3); };
  for (const Code code : {Code::internal, Code::out_of_memory, Code::left_gathered,
                          Code::parameter_not_available, Code::communication}) {
    INFO(code_name(code));
    CHECK(blamed(code) == 3);
  }
  for (const Code code : {Code::usage, Code::data, Code::ranks_disagree, Code::edit_without_owner,
                          Code::not_bit_identical, Code::not_finite, Code::comm_timeout,
                          Code::collective_mismatch, Code::interrupted}) {
    INFO(code_name(code));
    CHECK(blamed(code) == std::nullopt);
  }
}

TEST_CASE("an error as JSON has its parts, and null where no rank is to blame", "[lab]") {
  const Error error(Code::communication, "what\nmore", "way");
  CHECK(error_json(error, 1).dump() ==
        R"({"code":"ZL701","exit_status":7,"rank":1,"message":"what\nmore","way_out":"way"})");
  CHECK(error_json(error, std::nullopt)["rank"].is_null());
}

TEST_CASE("what asks for JSON among the arguments asks for it in errors too", "[lab]") {
  CHECK(error_style({"train", "--stpes", "--json"}).json);
  CHECK_FALSE(error_style({"train"}).json);
  CHECK(error_style({"train", "--json"}).columns == 0);
  CHECK_FALSE(error_style({"train", "--json"}).color);
}

}  // namespace
}  // namespace zerolab
