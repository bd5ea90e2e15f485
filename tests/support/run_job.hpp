#pragma once

#include <functional>
#include <string>

#include "stages/comm/job.hpp"

namespace zerolab::test {

/// How a job of threads ended: its status, and its message if it failed.
struct JobEnd {
  int status = 0;
  std::string message;
};

inline JobEnd run_job(int ranks, const std::function<void(Communicator&)>& body,
                      const Patience& patience = {}) {
  JobEnd end;
  const auto program = [&](int) {
    return RankProgram{.body = body, .report = [&](const Communicator&, const Error& error) {
                         end.message += error.what();
                       }};
  };
  end.status = run_threads(ranks, program, patience);
  return end;
}

}  // namespace zerolab::test
