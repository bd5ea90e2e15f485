#include "stages/base/json_text.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

TEST_CASE("a syntax error is shown with file, line, column and the line itself", "[base]") {
  const auto error = thrown_by([] { parse_json("{\n  \"a\": 1,\n  \"b\" 2\n}", "ds.json"); });
  REQUIRE(error);
  CHECK(error->code() == Code::config_syntax);
  CHECK(contains(error->what(), "ds.json:3:7: unexpected number literal; expected ':'"));
  CHECK(contains(error->what(), "\n  3 |   \"b\" 2\n    |       ^"));
}

TEST_CASE("a text that ends too early is a syntax error at its end", "[base]") {
  for (const std::string_view text : {"", "{", "{\"a\": [1, 2"}) {
    const auto error = thrown_by([&] { parse_json(text, "ds.json"); });
    INFO(text);
    REQUIRE(error);
    CHECK(contains(error->what(), "ds.json:1:"));
    CHECK(contains(error->what(), "unexpected end of input"));
  }
}

TEST_CASE("a number that no double can hold is named", "[base]") {
  const auto error = thrown_by([] { parse_json("{\"a\": 1e400}", "ds.json"); });
  REQUIRE(error);
  CHECK(error->code() == Code::config_syntax);
  CHECK(contains(error->what(), "1e400"));
}

TEST_CASE("what is nested too deeply for those who copy it is refused", "[base]") {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  };
  CHECK_NOTHROW(parse_json(nested(100), "ds.json"));
  for (const std::size_t levels : {std::size_t{101}, std::size_t{3'000'000}}) {
    const auto error = thrown_by([&] { parse_json(nested(levels), "ds.json"); });
    REQUIRE(error);
    CHECK(error->code() == Code::config_syntax);
    CHECK(contains(error->what(), "ds.json: more than 100 levels"));
  }
}

TEST_CASE("comments are allowed and keys given twice are reported with their path", "[base]") {
  std::vector<std::string> duplicates;
  const auto value = parse_json(R"({
      // a comment
      "a": {"x": 1, "y": 2, "x": 3}, /* another */
      "b": [{"x": 1}, {"x": 2}],
      "a2": {"x": 1}, "b": 4})",
                                "ds.json", &duplicates);
  CHECK(value["a"]["x"] == 3);
  CHECK(duplicates == std::vector<std::string>{"a.x", "b"});
}

TEST_CASE("any bytes fit into a JSON string and can be had back", "[base]") {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
  const auto text = nlohmann::json::parse(nlohmann::json(bytes_as_text(bytes)).dump());
  const std::string utf8 = text.get<std::string>();
  CHECK(utf8.size() == 128 + 2 * 128);
  CHECK(bytes_as_text("\xC3\xA9") == "\xC3\x83\xC2\xA9");  // é in UTF-8: Ã©
  std::string back;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto first = static_cast<unsigned char>(utf8[i]);
    if (first < 0x80) {
      back.push_back(utf8[i]);
    } else {
      back.push_back(static_cast<char>((first & 3) << 6 | (utf8[++i] & 0x3F)));
    }
  }
  CHECK(back == bytes);
}

}  // namespace
}  // namespace zerolab
