#pragma once

#include <string>
#include <string_view>

namespace zerolab::test {

/// Gives a reader of headers what tests/fuzz describes as text. A header: a line "header LENGTH
/// FILE-SIZE", both decimal, then the header's JSON; the eight bytes of the length are made here. A
/// manifest: a line "manifest", then its JSON, whose checksum is made right here, so that what is
/// behind it is reached. Returns if it is accepted, or throws the reader's Error, or
/// std::logic_error when what is accepted does not hold together.
void read_fuzz_input(std::string_view input);

/// The input with the length that its header has, and as much data as before: who changes a header
/// at random gets no further otherwise. One that is no header stays as it is.
std::string with_right_length(std::string_view input);

}  // namespace zerolab::test
