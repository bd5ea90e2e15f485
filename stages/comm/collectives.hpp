#pragma once

#include <span>
#include <string>
#include <vector>

#include "stages/comm/comm_stream.hpp"

namespace zerolab {

/// A run of elements that is cut among the ranks: elements [bounds[r], bounds[r + 1]) are rank r's
/// part. `data` points at the whole run on this rank; the bounds are the same on every rank, start
/// at 0, never fall, and a part may be empty. All runs of a collective have one type of elements.
struct Run {
  Values data;
  std::vector<Index> bounds;

  Index elements() const { return bounds.back(); }
};

// Collectives over several runs are grouped, like calls between ncclGroupStart and ncclGroupEnd:
// one operation straight into the runs, no slab. All are in place. Each returns at once; the runs
// must stay until CommStream::wait. With one rank nothing is sent, but the call is counted.

/// Every rank's own part is filled in; afterwards the whole run is.
Pending all_gather(CommStream& stream, const std::vector<Run>& runs, std::string owner);

/// The own part becomes (sum over ranks, in rank order) * factor; the rest of the run is left as it
/// was. Works in rounds, so that beside the runs it holds a receive buffer of at most their size.
Pending reduce_scatter(CommStream& stream, const std::vector<Run>& runs, float factor,
                       std::string owner, const Governor* governor = nullptr);

/// The size of that buffer, in elements, for runs of `all` elements of which `own` are this rank's.
Index receive_elements(Index all, Index own, int ranks);

/// reduce_scatter followed by all_gather: the whole run becomes the scaled sum.
Pending all_reduce(CommStream& stream, const std::vector<Run>& runs, float factor,
                   std::string owner, const Governor* governor = nullptr);

/// `mine`, this rank's part of the run, arrives in its place in the run of rank `root`, which has
/// its own part there already. On the other ranks the run has bounds, and no memory.
Pending gather(CommStream& stream, Values mine, const Run& run, int root, std::string owner);

/// `data` of rank `root` replaces everybody's.
Pending broadcast(CommStream& stream, std::span<std::byte> data, int root, std::string owner);

/// Returns when every rank has called it.
void barrier(CommStream& stream, std::string owner);

/// Small host values for everybody: entry r of the result is rank r's `mine` (equal lengths).
/// Counted under `control`. Waits.
std::vector<std::vector<std::byte>> share(CommStream& stream, std::span<const std::byte> mine,
                                          std::string owner);

}  // namespace zerolab
