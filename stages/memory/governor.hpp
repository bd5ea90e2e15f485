#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stages/base/types.hpp"

namespace zerolab {

/// A setting that memory depends on: what it is, and the value at which it leaves least.
struct Setting {
  std::string name;
  Index value = 0;
  Index extreme = 1;
  bool is_switch = false;  // false is 0, true is 1
};

/// "true", "500".
std::string text_of(const Setting& setting, Index value);

/// Knows what would be there if a setting were another one, everything else as it is. Blocks of
/// memory name their governor, and it is asked only when an allocation does not fit.
class Governor {
 public:
  virtual ~Governor() = default;

  virtual std::vector<Setting> settings() const = 0;
  /// What is held at this moment, what is asked for included.
  struct Held {
    Index bytes = 0;   // by its blocks,
    Index beside = 0;  // and by all others
  };
  /// The bytes that its blocks would have if the setting at `index` of settings() were `value`. If
  /// there would have been no room for them at an earlier moment, that counts, too.
  virtual Index bytes_at(std::size_t index, Index value, const Held& held) const = 0;
};

/// Blocks whose size is proportional to one setting.
class Proportional final : public Governor {
 public:
  explicit Proportional(Setting setting) : setting_(std::move(setting)) {}

  std::vector<Setting> settings() const override { return {setting_}; }
  Index bytes_at(std::size_t index, Index value, const Held& held) const override;

 private:
  Setting setting_;
};

/// `bytes` * `value` / `whole`, rounded up.
Index proportional_bytes(Index bytes, Index value, Index whole);

/// The value nearest to what the setting is at which `fits`, while the next one towards what it is
/// does not; none if not even its extreme does.
std::optional<Index> nearest_that_fits(const Setting& setting,
                                       const std::function<bool(Index value)>& fits);

}  // namespace zerolab
