#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stages/engine/stage.hpp"

namespace zerolab {

/// A hash of each of these parameters, which must be whole on this rank.
std::vector<std::uint64_t> hashes_of(Runtime& runtime, const std::vector<Parameter*>& parameters);

/// All ranks tell each other a number for each of these parameters: a hash, or what became of one.
/// Lists the ranks whose number is wrong, one parameter a line, as "\n  'w' by rank 1, 2" (or
/// another preposition). It is the same text on every rank, so that all of them can throw.
/// `wrong(number of the rank, number of rank 0)`.
std::string ranks_where(Runtime& runtime, const std::vector<Parameter*>& parameters,
                        const std::vector<std::uint64_t>& numbers, std::string_view preposition,
                        const std::function<bool(std::uint64_t, std::uint64_t)>& wrong);

/// Parameters that every rank holds whole are trained on as if all copies were equal; one that is
/// not makes each rank train a model of its own, and the parameter hash does not see it, because
/// each rank adds a part of its own. Throws Error (Code::replicas_differ) on all ranks.
void check_replicas(Runtime& runtime, ParameterSet& parameters, Index step);

}  // namespace zerolab
