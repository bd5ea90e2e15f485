#include "visualize/diagram/text.hpp"

#include "tests/support/catch.hpp"

namespace zerolab::test {
namespace {

using diagram::label_text;

TEST_CASE("a name in a label is escaped, without control characters, and cut in its middle",
          "[diagram]") {
  CHECK(label_text("blocks.0.mlp.up.weight") == "blocks.0.mlp.up.weight");
  CHECK(label_text("<b>\"a\" & b\\N</b>") == "&lt;b&gt;&quot;a&quot; &amp; b&#92;N&lt;/b&gt;");
  CHECK(label_text(std::string("a\nb\0c\x1b\x7f", 7)) == "a\uFFFDb\uFFFDc\uFFFD\uFFFD");
  CHECK(label_text("\uFFFF") == "\uFFFD");
  CHECK(label_text("abcdefghij", 10) == "abcdefghij");
  CHECK(label_text("abcdefghijk", 10) == "abcd\u2026ghijk");
  CHECK(label_text("\u00E4\u00F6\u00FC\u00DF\u20AC\U0001F600x", 5) ==
        "\u00E4\u00F6\u2026\U0001F600x");
  CHECK(label_text("&&&&&&", 3) == "&amp;\u2026&amp;");
  CHECK(label_text("") == "");
}

TEST_CASE("numbers on pictures have commas, units and three digits", "[diagram]") {
  CHECK(diagram::with_commas(0) == "0");
  CHECK(diagram::with_commas(999) == "999");
  CHECK(diagram::with_commas(1000) == "1,000");
  CHECK(diagram::with_commas(1234567) == "1,234,567");
  CHECK(diagram::duration(0) == "0.00 \u00B5s");
  CHECK(diagram::duration(0.5) == "0.50 \u00B5s");
  CHECK(diagram::duration(31.44) == "31.4 \u00B5s");
  CHECK(diagram::duration(999.4) == "999 \u00B5s");
  CHECK(diagram::duration(1200) == "1.20 ms");
  CHECK(diagram::duration(3.5e6) == "3.50 s");
  CHECK(diagram::size(512) == "512 B");
  CHECK(diagram::size(1536) == "1.50 KiB");
  CHECK(diagram::size(3 * 1048576) == "3.00 MiB");
}

}  // namespace
}  // namespace zerolab::test
