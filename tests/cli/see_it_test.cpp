// The commands under "See it" in docs/errors.md lead to the errors they stand for.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tests/cli/command.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/error_samples.hpp"

using namespace zerolab;
using namespace zerolab::test;

namespace {

struct NotSeen {
  Code code;
  const char* reason;
};

/// The codes that no command leads to, and why.
constexpr std::array kNotSeen{
    NotSeen{Code::clinic, "a page of the clinic that is wrong"},
    NotSeen{Code::peer_failed, "the rank that failed has the word"},
    NotSeen{Code::mpi_thread_level, "an MPI without threads"},
};

/// Runs the commands as a reader does who has zerolab in the PATH, in an empty folder.
Outcome type(const std::string& commands) {
  const Scratch scratch;
  scratch.write("bin/zerolab", fmt::format("#!/bin/sh\nexec '{}' \"$@\"\n", ZEROLAB_PROGRAM));
  scratch.write("bin/mpirun", fmt::format("#!/bin/sh\nexec '{}' \"$@\"\n", ZEROLAB_MPIRUN));
  for (const char* program : {"bin/zerolab", "bin/mpirun"}) {
    std::filesystem::permissions(scratch.path(program), std::filesystem::perms::owner_all);
  }
  std::filesystem::create_directory(scratch.path("empty"));
  scratch.write("typed", fmt::format("cd {}\nPATH={}:$PATH\n{}", scratch.arg("empty"),
                                     scratch.arg("bin"), commands));
  return run_command("sh " + scratch.arg("typed"));
}

}  // namespace

TEST_CASE("every command under See it leads to its error and exit status, told once", "[docs]") {
  int seen = 0;
  for (const CodeInfo& info : all_codes()) {
    const std::string commands = see_it_of(info.code);
    if (commands.empty()) continue;
    const std::string code = code_name(info.code);
    INFO(code << "\n" << commands);
    const Outcome outcome = type(commands);
    INFO(outcome.all());
    CHECK(outcome.status == Error(info.code, "", "").exit_status());
    CHECK(outcome.count(code + ": ") == 1);
    CHECK(outcome.count("zerolab: ") == 1);
    ++seen;
  }
  CHECK(seen >= 42);
}

TEST_CASE("a code without a command to see it has a reason, and only such a one", "[docs]") {
  for (const CodeInfo& info : all_codes()) {
    INFO(code_name(info.code));
    const auto listed = std::count_if(kNotSeen.begin(), kNotSeen.end(),
                                      [&](const NotSeen& each) { return each.code == info.code; });
    CHECK(listed == (see_it_of(info.code).empty() ? 1 : 0));
  }
}
