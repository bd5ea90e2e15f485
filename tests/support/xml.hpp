#pragma once

#include <string>

namespace zerolab::test {

/// What is not well-formed in an XML document (SVG): tags that do not match, attributes without
/// quotes, unknown entities, control characters. Empty if all is well. It reads no DTD.
std::string fault_in_xml(const std::string& text);

}  // namespace zerolab::test
