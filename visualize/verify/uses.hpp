#pragma once

#include <map>
#include <vector>

#include "visualize/verify/states.hpp"

namespace zerolab::verify {

/// What modules read while they run, and that it is let go afterwards.
class Uses {
 public:
  /// `states` must have seen everything before an event that is shown here, and not the event.
  Uses(const Catalogue& catalogue, const Reporter& report, const States& states);

  void see(const log::Event& event, const log::ParamEvent& move);
  void see(const log::Event& event, const log::SpanEvent& span);
  void see(const log::Event& event, const log::StepEvent& step);
  /// Of a log that is whole.
  void end();

 private:
  void check_read(const log::Event& event, const log::SpanEvent& span, std::size_t parameter,
                  double from) const;
  bool rests(std::size_t parameter, bool scopes_allowed) const;
  void pass_begins();
  void check_released(const char* when) const;

  const Catalogue& catalogue_;
  const Reporter& report_;
  const States& states_;
  // By module: what it came to read while it ran (auto_register_external_parameters), and when.
  std::vector<std::map<std::size_t, double>> late_;
  bool pass_is_over_ = false;
};

}  // namespace zerolab::verify
