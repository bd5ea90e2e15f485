#include "lab/byte_size.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "stages/base/error.hpp"

namespace zerolab {
namespace {

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr std::array kUnits{
    Unit{"", 1},         Unit{"b", 1},        Unit{"kb", 1e3},     Unit{"mb", 1e6},
    Unit{"gb", 1e9},     Unit{"tb", 1e12},    Unit{"kib", 0x1p10}, Unit{"mib", 0x1p20},
    Unit{"gib", 0x1p30}, Unit{"tib", 0x1p40},
};
constexpr double kMost = 0x1p62;

[[noreturn]] void refuse(std::string_view text, const std::string& flag, const std::string& why) {
  throw Error(Code::usage, fmt::format("{} {}: {}", flag, text, why),
              "write bytes, or a number with a unit: 1000000, 64MiB, 1GB");
}

}  // namespace

Index parse_byte_size(std::string_view text, const std::string& flag) {
  const std::string copy(text);
  const std::size_t digits = copy.find_first_not_of("0123456789.");
  const std::string number = copy.substr(0, digits);
  std::string unit;
  for (const char c : digits == std::string::npos ? "" : copy.substr(digits)) {
    if (c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0') refuse(text, flag, "this is not an amount of memory");
  if (unit.size() == 1 && std::string_view("kmgt").find(unit) != std::string_view::npos) {
    const char letter = static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0])));
    refuse(text, flag,
           fmt::format("{0} could be {0}B (powers of 1000) or {0}iB (powers of 1024)", letter));
  }
  for (const Unit& known : kUnits) {
    if (known.name != unit) continue;
    const double bytes = std::floor(value * known.bytes);
    if (bytes < 1 || bytes > kMost) refuse(text, flag, "at least one byte, and not beyond 4 EiB");
    return static_cast<Index>(bytes);
  }
  refuse(text, flag, fmt::format("the unit {} is not known", unit));
}

}  // namespace zerolab
