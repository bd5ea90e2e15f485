#pragma once

#include <functional>
#include <string>
#include <vector>

#include "stages/comm/collectives.hpp"

namespace zerolab {

/// Everybody's text, by rank; of any length.
std::vector<std::string> share_texts(CommStream& stream, const std::string& mine,
                                     const std::string& owner);

/// Does a part of a work on every rank, and gives everybody what each of them returned. When ranks
/// throw, all throw the Error of the lowest of them (what is none is Code::internal): nobody goes
/// on, and nobody waits.
std::vector<std::string> together(CommStream& stream, const std::string& owner,
                                  const std::function<std::string()>& part);

}  // namespace zerolab
