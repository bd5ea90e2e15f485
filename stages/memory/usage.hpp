#pragma once

#include <array>
#include <string>
#include <string_view>

#include "stages/base/types.hpp"

namespace zerolab {

/// What tensor memory is used for.
enum class Category {
  parameters,
  gradients,
  optimizer,
  activations,
  gather_buffers,  // gathered copies of parameters, persistent ones too
  reduce_buffers,  // receive buffers, and whole gradients held for a moment
  workspace,       // scratchpads of the device library
  checkpoint,
};
inline constexpr std::size_t kCategories = 8;
std::string_view name_of(Category category);

/// Bytes by category.
struct Usage {
  std::array<Index, kCategories> by_category{};

  Index operator[](Category category) const {
    return by_category[static_cast<std::size_t>(category)];
  }
  Index& operator[](Category category) { return by_category[static_cast<std::size_t>(category)]; }
  Index total() const;
};

/// "1.25 MiB", "312 B": for people; logs have plain byte counts.
std::string human_bytes(Index bytes);

}  // namespace zerolab
