#include "visualize/verify/transfers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace zerolab::verify {
namespace {

/// How many parameters an owner stands for.
std::size_t count_in(std::string_view owner) {
  constexpr std::string_view kEnd = " parameters)";
  const std::size_t begin = owner.rfind(" (");
  std::size_t count = 1;
  if (begin != std::string_view::npos && owner.ends_with(kEnd)) {
    std::from_chars(owner.data() + begin + 2, owner.data() + owner.size(), count);
  }
  return count;
}

}  // namespace

void Transfers::begin(std::size_t parameter) {
  end(parameter);
  travellers_.push_back({parameter});
}

std::vector<std::size_t> Transfers::moved(const std::string& owner, double finished) {
  const auto name = [&](std::size_t i) -> const std::string& {
    return catalogue_[travellers_[i].parameter].name;
  };
  for (std::size_t i = 0; i < travellers_.size(); ++i) {
    if (name(i) == owner && !travellers_[i].finished) return move(i, 1, finished);
  }
  const std::size_t count = count_in(owner);
  if (count < 2 || count > travellers_.size()) return {};
  for (std::size_t i = 0; i + count <= travellers_.size(); ++i) {
    if (travellers_[i].finished || !owner.starts_with(name(i))) continue;
    if (owner == fmt::format("{} .. {} ({} parameters)", name(i), name(i + count - 1), count)) {
      return move(i, count, finished);
    }
  }
  return {};
}

std::vector<std::size_t> Transfers::moved_all(double finished) {
  return move(0, travellers_.size(), finished);
}

std::vector<std::size_t> Transfers::move(std::size_t first, std::size_t count, double finished) {
  std::vector<std::size_t> result;
  for (std::size_t i = first; i < first + count; ++i) {
    travellers_[i].finished = finished;
    result.push_back(travellers_[i].parameter);
  }
  return result;
}

std::optional<double> Transfers::end(std::size_t parameter) {
  const auto found =
      std::find_if(travellers_.begin(), travellers_.end(),
                   [parameter](const Traveller& each) { return each.parameter == parameter; });
  if (found == travellers_.end()) return std::nullopt;
  const std::optional<double> finished = found->finished;
  travellers_.erase(found);
  return finished;
}

}  // namespace zerolab::verify
