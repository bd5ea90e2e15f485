#include "lab/link_option.hpp"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "lab/byte_size.hpp"
#include "stages/base/error.hpp"

namespace zerolab {
namespace {

struct Unit {
  std::string_view name;
  double size;
};
constexpr std::array kTimes{Unit{"ns", 1e-9}, Unit{"us", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1}};
constexpr std::array kBits{Unit{"bit", 1}, Unit{"Kbit", 1e3}, Unit{"Mbit", 1e6}, Unit{"Gbit", 1e9},
                           Unit{"Tbit", 1e12}};

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(Code::usage, fmt::format("--link {}: {}", text, why),
              "write --link bandwidth=1GB/s,latency=20us, or one of the two");
}

struct Amount {
  double value;
  std::string unit;
};
Amount amount_in(std::string_view whole, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || text.find_first_not_of("0123456789.") == 0) {
    refuse(whole, fmt::format("'{}' is not a number with a unit", text));
  }
  return {value, std::string(end)};
}

double bandwidth_of(std::string_view whole, const std::string& text) {
  constexpr std::string_view kASecond = "/s";
  if (text.size() <= kASecond.size() ||
      text.compare(text.size() - kASecond.size(), kASecond.size(), kASecond) != 0) {
    refuse(whole, "a bandwidth ends in /s");
  }
  const std::string a_second = text.substr(0, text.size() - kASecond.size());
  const Amount amount = amount_in(whole, a_second);
  for (const Unit& unit : kBits) {
    if (unit.name == amount.unit && amount.value > 0) return amount.value * unit.size / 8;
  }
  return static_cast<double>(parse_byte_size(a_second, "--link bandwidth"));
}

double latency_of(std::string_view whole, const std::string& text) {
  const Amount amount = amount_in(whole, text);
  for (const Unit& unit : kTimes) {
    if (unit.name != amount.unit) continue;
    const double seconds = amount.value * unit.size;
    if (seconds > 60) refuse(whole, "a latency is at most a minute");
    return seconds;
  }
  refuse(whole, fmt::format("a latency is in ns, us, ms or s, not in '{}'", amount.unit));
}

}  // namespace

Link parse_link(std::string_view text) {
  Link link;
  bool has_bandwidth = false;
  bool has_latency = false;
  std::string_view rest = text;
  while (true) {
    const std::string_view part = rest.substr(0, rest.find(','));
    const std::size_t equals = part.find('=');
    const std::string_view name = part.substr(0, equals);
    const std::string value(equals == std::string_view::npos ? "" : part.substr(equals + 1));
    bool& seen = name == "bandwidth" ? has_bandwidth : has_latency;
    if (name != "bandwidth" && name != "latency") {
      refuse(text, fmt::format("'{}' is neither bandwidth=... nor latency=...", part));
    }
    if (seen) refuse(text, fmt::format("it has {} twice", name));
    seen = true;
    if (name == "bandwidth") {
      link.bandwidth = bandwidth_of(text, value);
    } else {
      link.latency = latency_of(text, value);
    }
    if (part.size() == rest.size()) break;
    rest.remove_prefix(part.size() + 1);
  }
  return link;
}

std::string to_string(const Link& link) {
  if (!link.slows()) return "none";
  return fmt::format("bandwidth={:g}B/s,latency={:g}s", link.bandwidth, link.latency);
}

}  // namespace zerolab
