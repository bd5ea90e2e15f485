#include "visualize/verify/transfers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

namespace zerolab::verify {
namespace {

/// How many parameters an owner stands for.
std::size_t count_in(std::string_view owner) {
  const std::size_t begin = owner.rfind(" (");
  std::size_t count = 1;
  if (begin != std::string_view::npos && owner.ends_with(" parameters)")) {
    std::from_chars(owner.data() + begin + 2, owner.data() + owner.size(), count);
  }
  return count;
}

}  // namespace

void Transfers::begin(std::size_t parameter) {
  std::erase_if(travellers_, [&](const Traveller& each) { return each.parameter == parameter; });
  travellers_.push_back({parameter});
}

void Transfers::moved(const log::Event& event, const log::CommEvent& comm) {
  const std::size_t count = count_in(comm.owner);
  auto each = first_of(comm.owner, count);
  if (each == travellers_.end()) return expect_elements(event, comm, std::nullopt);
  Count elements = 0;
  for (std::size_t i = 0; i < count; ++i, ++each) {
    each->finished = comm.finished;
    elements += padding_.elements(each->parameter);
  }
  expect_elements(event, comm, elements);
}

// The owner is put together again, since names may look like anything.
Transfers::Travellers::iterator Transfers::first_of(const std::string& owner, std::size_t count) {
  const auto name = [&](const Traveller& each) { return catalogue_[each.parameter].name; };
  for (std::size_t i = 0; count > 0 && count <= travellers_.size() - i; ++i) {
    if (travellers_[i].finished || !owner.starts_with(name(travellers_[i]))) continue;
    const std::string called = count == 1
                                   ? name(travellers_[i])
                                   : fmt::format("{} .. {} ({} parameters)", name(travellers_[i]),
                                                 name(travellers_[i + count - 1]), count);
    if (called == owner) return travellers_.begin() + static_cast<std::ptrdiff_t>(i);
  }
  return travellers_.end();
}

void Transfers::moved_all(const log::Event& event, const log::CommEvent& comm) {
  for (Traveller& each : travellers_) each.finished = comm.finished;
  expect_elements(event, comm, travellers_.empty() ? std::nullopt : std::optional(padding_.flat()));
}

void Transfers::expect_elements(const log::Event& event, const log::CommEvent& comm,
                                std::optional<Count> expected) const {
  const std::string says = fmt::format("{} of {}", name_of(comm.op), in_quotes(comm.owner));
  if (!expected) {
    report_(Kind::collective_of_nothing, event.line, says + ": nothing of that name is on its way");
  } else if (comm.elements != *expected) {
    report_(Kind::collective_elements, event.line,
            fmt::format("{} moves {} elements, with padding they have {}", says, comm.elements,
                        *expected));
  }
}

void Transfers::end(const log::Event& event, std::size_t parameter) {
  const auto found =
      std::find_if(travellers_.begin(), travellers_.end(),
                   [parameter](const Traveller& each) { return each.parameter == parameter; });
  const auto finished = found == travellers_.end() ? std::nullopt : found->finished;
  if (found != travellers_.end()) travellers_.erase(found);
  const std::string name = in_quotes(catalogue_[parameter].name);
  if (!finished && catalogue_[parameter].numel > 0) {
    report_(kinds_.without, event.line,
            fmt::format("{} arrives, and no collective that moves it has been waited for", name));
  } else if (finished && *finished > event.t) {
    report_(
        kinds_.too_early, event.line,
        fmt::format("{} arrives at {} us, and the collective that moves it is finished at {} us",
                    name, event.t, *finished));
  }
}

}  // namespace zerolab::verify
