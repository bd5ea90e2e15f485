// The readers of safetensors headers and of manifests, given what a fuzzer thinks of
// (tests/fuzz/run; tests/support/fuzz_input.hpp says how an input is written). They may accept a
// text, or refuse it with an Error of exit status 6. Anything else is a finding.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "stages/base/error.hpp"
#include "tests/support/fuzz_input.hpp"

namespace {

void read(std::string_view input) {
  try {
    zerolab::test::read_fuzz_input(input);
  } catch (const zerolab::Error& error) {
    if (error.exit_status() != 6) std::abort();
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  read(input);
  read(zerolab::test::with_right_length(input));
  return 0;
}
