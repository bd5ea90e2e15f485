#include "lab/generated_text.hpp"

#include "tests/support/catch.hpp"

namespace zerolab {
namespace {

Sampling sampling_of(std::string prompt) {
  return {.count = 24, .temperature = 0.8, .top_k = 40, .seed = 7, .prompt = std::move(prompt)};
}

TEST_CASE("what a terminal could take for a command is escaped, letters of any script are not",
          "[lab]") {
  CHECK(printable("line one\nline two\n") == "line one\nline two\n");
  CHECK(printable("\x1b[2J\r\t\x7f") == "\\x1b[2J\\x0d\\x09\\x7f");
  CHECK(printable("é → 𝄞") == "é → 𝄞");
  CHECK(printable(std::string(1, '\0')) == "\\x00");
  CHECK(printable("\xC2\x9B[2J") == "\\xc2\\x9b[2J");  // a control character in UTF-8
  CHECK(printable("\xC2\xA0") == "\xC2\xA0");
}

TEST_CASE("bytes that are no UTF-8 are escaped one by one, and no more than those", "[lab]") {
  CHECK(printable("a\xC3") == "a\\xc3");                           // cut off
  CHECK(printable("\xC3(") == "\\xc3(");                           // not gone on with
  CHECK(printable("\xA9") == "\\xa9");                             // not begun
  CHECK(printable("\xC0\xAF") == "\\xc0\\xaf");                    // longer than needed
  CHECK(printable("\xE0\x82\xA9") == "\\xe0\\x82\\xa9");           // the same
  CHECK(printable("\xED\xA0\x80") == "\\xed\\xa0\\x80");           // half of a pair
  CHECK(printable("\xF4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");  // beyond the last
  CHECK(printable("\xFF\xFE") == "\\xff\\xfe");
  CHECK(printable("\xF0\x9D\x84") == "\\xf0\\x9d\\x84");
}

TEST_CASE("a text goes on where its prompt ends, below it and with a mark of its own", "[lab]") {
  CHECK(generated_text({300, "General Public\nLicense"}, sampling_of("The\nGNU "), Style::ascii) ==
        " after step 300: 24 bytes, temperature 0.8, top-k 40, seed 7\n"
        "-------------------------------------------------------------\n"
        " > The\n"
        " > GNU \n"
        " |     General Public\n"
        " | License\n");
  CHECK(generated_text({1, "a"}, {.count = 1, .temperature = 0, .prompt = "é"}, Style::unicode) ==
        " after step 1: 1 byte, the most likely byte every time\n"
        "───────────────────────────────────────────────────────\n"
        " ▸ é\n"
        " │  a\n");
}

TEST_CASE("a prompt that is empty, ends a line or is long leaves its text on the left", "[lab]") {
  const auto lines_of = [](const std::string& prompt) {
    const std::string block = generated_text({1, "text"}, sampling_of(prompt), Style::ascii);
    return block.substr(block.find("-\n") + 2);
  };
  CHECK(lines_of("") == " | text\n");
  CHECK(lines_of("The GNU\n") == " > The GNU\n | text\n");
  const std::string forty(40, 'x');
  CHECK(lines_of(forty) == " > " + forty + "\n | " + std::string(40, ' ') + "text\n");
  CHECK(lines_of(forty + 'x') == " > " + forty + "x\n | text\n");
}

}  // namespace
}  // namespace zerolab
