#include "stages/zero3/module_order.hpp"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "stages/base/error.hpp"

namespace zerolab {
namespace {

using Text = std::vector<std::byte>;

std::string_view as_text(const Text& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Everybody's lines; the own ones may have another length than theirs.
std::vector<std::vector<std::string>> share_lines(CommStream& comm, const std::string& mine) {
  const std::uint64_t length = mine.size();
  std::uint64_t longest = 0;
  for (const Text& of_rank :
       share(comm, std::as_bytes(std::span(&length, 1)), "length of the module order")) {
    std::uint64_t theirs = 0;
    std::memcpy(&theirs, of_rank.data(), sizeof(theirs));
    longest = std::max(longest, theirs);
  }
  std::string padded = mine;
  padded.resize(longest, '\n');
  std::vector<std::vector<std::string>> lines;
  for (const Text& of_rank : share(comm, std::as_bytes(std::span(padded)), "module order")) {
    lines.emplace_back();
    std::string_view rest = as_text(of_rank);
    while (!rest.empty() && rest.front() != '\n') {
      lines.back().emplace_back(rest.substr(0, rest.find('\n')));
      rest.remove_prefix(std::min(rest.size(), lines.back().back().size() + 1));
    }
  }
  return lines;
}

}  // namespace

Index ModuleNumbers::of(const Module& module) {
  const auto [entry, added] = numbers_.try_emplace(&module, static_cast<Index>(names_.size()));
  if (added) names_.push_back(module.name());
  return entry->second;
}

std::string ModuleNumbers::describe(const std::optional<Stop>& stop) const {
  if (!stop) return "the end of the pass";
  return fmt::format("'{}' ({})", names_[static_cast<std::size_t>(stop->module)],
                     name_of(stop->kind));
}

void check_same_order(CommStream& comm, const std::vector<Stop>& order,
                      const ModuleNumbers& modules) {
  std::string mine;
  for (const Stop& stop : order) mine += modules.describe(stop) + '\n';
  const std::uint64_t hash = XXH64(mine.data(), mine.size(), 0);
  const auto hashes = share(comm, std::as_bytes(std::span(&hash, 1)), "hash of the module order");
  if (std::set<Text>(hashes.begin(), hashes.end()).size() == 1) return;

  const auto orders = share_lines(comm, mine);
  const auto visit = [&](std::size_t rank, std::size_t at) {
    return at < orders[rank].size() ? orders[rank][at] : modules.describe(std::nullopt);
  };
  std::size_t at = 0;
  const auto differs = [&](std::size_t rank) { return visit(rank, at) != visit(0, at); };
  const auto somebody_differs = [&] {
    for (std::size_t rank = 1; rank < orders.size(); ++rank) {
      if (differs(rank)) return true;
    }
    return false;
  };
  while (!somebody_differs()) ++at;
  std::string where;
  for (std::size_t rank = 0; rank < orders.size(); ++rank) {
    where += fmt::format("\n  rank {}: {}", rank, visit(rank, at));
  }
  throw Error(
      Code::module_order,
      fmt::format("the ranks run different modules: visit {} of the pass is{}", at + 1, where),
      "stage 3 gathers a module's parameters on all ranks together: run the same modules "
      "in the same order on every rank, or make what holds the branches a leaf module");
}

}  // namespace zerolab
