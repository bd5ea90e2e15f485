#pragma once

#include <string>

namespace zerolab::test {

/// What differs between a text and the file of that name in tests/visualize/golden: the first line
/// that does, from both; nothing if they are equal. With ZEROLAB_WRITE_GOLDEN in the environment
/// the file is written anew, which is said as a difference, so that no test passes that way.
std::string difference_from_golden(const std::string& text, const std::string& name);

}  // namespace zerolab::test
