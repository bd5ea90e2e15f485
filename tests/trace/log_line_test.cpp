#include "stages/trace/log_line.hpp"

#include <string>

#include "tests/support/catch.hpp"

namespace zerolab {
namespace {

std::string in_microseconds(double value) {
  std::string text;
  LogLine(text).field("t", Microseconds{value}).end();
  return text;
}

TEST_CASE("a time in the log has one digit behind the point, rounded", "[trace]") {
  CHECK(in_microseconds(0) == "{\"t\":0.0}\n");
  CHECK(in_microseconds(12345678.94) == "{\"t\":12345678.9}\n");
  CHECK(in_microseconds(9.96) == "{\"t\":10.0}\n");
  CHECK(in_microseconds(-3.14) == "{\"t\":-3.1}\n");
  CHECK(in_microseconds(-0.04) == "{\"t\":0.0}\n");
}

TEST_CASE("a line of the log may be longer than any room made for it before", "[trace]") {
  const std::string name(100'000, 'x');
  std::string text;
  for (int i = 0; i < 3; ++i) LogLine(text).field("a", name).field("n", Index{7}).end();
  const std::string line = "{\"a\":\"" + name + "\",\"n\":7}\n";
  CHECK(text == line + line + line);
}

}  // namespace
}  // namespace zerolab
