#include <algorithm>
#include <sstream>

#include "lab/progress.hpp"
#include "lab/settings_table.hpp"
#include "lab/table.hpp"
#include "tests/config/support.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/thrown.hpp"

namespace zerolab {
namespace {

TEST_CASE("columns are as wide as their widest cell, counted in letters, not bytes", "[lab]") {
  Table table;
  table.columns = {{"name", Table::Align::left}, {"a\nvalue", Table::Align::right}};
  table.rows = {{"→→", "1"}, {"longer", "12345678"}};
  CHECK(draw_table(table, Style::ascii) ==
        "                a\n"
        " name       value\n"
        "-----------------\n"
        " →→             1\n"
        " longer  12345678\n");
  CHECK(contains(draw_table(table, Style::unicode), "─────────────────\n"));
  CHECK(display_width("→→ab") == 4);
}

TEST_CASE("box lines are for terminals, pipes and --plain get ASCII", "[lab]") {
  CHECK(choose_style(false, true) == Style::unicode);
  CHECK(choose_style(false, false) == Style::ascii);
  CHECK(choose_style(true, true) == Style::ascii);
}

TEST_CASE("seconds are printed in a unit that keeps three digits", "[lab]") {
  CHECK(human_seconds(0.00082) == "820 us");
  CHECK(human_seconds(0.0123) == "12.3 ms");
  CHECK(human_seconds(0.123) == "123 ms");
  CHECK(human_seconds(1.234) == "1.23 s");
  CHECK(human_seconds(123.4) == "123.4 s");
}

TEST_CASE("the settings table says value, giver and effect of every setting", "[lab]") {
  const Effective effective =
      resolve(config(R"({"optimizer": {"type": "SGD"}, "steps_per_print": 10})"));
  const std::string text = settings_table(effective.rows, Style::ascii);
  CHECK(contains(text, "train_batch_size"));
  CHECK(contains(text, "preset gpt-nano"));
  CHECK(contains(text, "ds.json"));
  CHECK(contains(text, "ignored: only Adam and AdamW have it"));
  CHECK(contains(text, "ignored: the progress line shows every step"));
}

TEST_CASE("the progress line is written over on a terminal and absent from a pipe", "[lab]") {
  const Progress progress{12, 30, 3.14159, 18'234, Index{4} << 20};
  CHECK(progress_text(progress) == "step 12/30  loss 3.1416  18.2k tokens/s  device 4.00 MiB");
  std::ostringstream terminal, pipe;
  {
    ProgressLine line(terminal, true, "stage 2");
    line.show(progress);
    ProgressLine silent(pipe, false, "stage 2");
    silent.show(progress);
  }
  CHECK(terminal.str() == "\r\x1b[Kstage 2  " + progress_text(progress) + "\r\x1b[K");
  CHECK(pipe.str() == "");
}

TEST_CASE("a bar of bytes is full when all are done, and drawn once for each percent", "[lab]") {
  CHECK(bytes_text(0, 1000, Style::ascii) == "....................   0%  0 B of 1000 B");
  CHECK(bytes_text(499, 1000, Style::ascii) == "#########...........  49%  499 B of 1000 B");
  CHECK(bytes_text(999, 1000, Style::ascii) == "###################.  99%  999 B of 1000 B");
  CHECK(bytes_text(1000, 1000, Style::unicode) == "████████████████████ 100%  1000 B of 1000 B");
  std::ostringstream terminal;
  ProgressLine line(terminal, true, "merge");
  for (Index done = 0; done <= 1000; ++done) line.show_bytes(done, 1000, Style::ascii);
  const std::string text = terminal.str();
  CHECK(std::count(text.begin(), text.end(), '\r') == 101);
}

TEST_CASE("large counts have a comma every three digits", "[lab]") {
  CHECK(thousands(0) == "0");
  CHECK(thousands(999) == "999");
  CHECK(thousands(170560) == "170,560");
  CHECK(thousands(1000000) == "1,000,000");
}

}  // namespace
}  // namespace zerolab
