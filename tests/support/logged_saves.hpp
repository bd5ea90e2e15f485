#pragma once

#include <optional>
#include <string>

#include "tests/support/logged_run.hpp"

namespace zerolab::test {

/// The same of a training that saves a checkpoint into `folder` after every step, and all weights
/// into a file in it at the end; from a checkpoint on if `resumed` names one.
LoggedRun logged_saves(int ranks, Training training, const std::filesystem::path& folder,
                       const std::optional<std::string>& resumed = {});

}  // namespace zerolab::test
