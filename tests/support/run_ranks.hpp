#pragma once

#include <exception>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "stages/comm/local/local_world.hpp"

namespace zerolab {

/// Runs f(communicator) on n ranks that are threads, and returns what they returned, by rank
/// (nothing, if f returns nothing). If ranks throw, rethrows the error of the lowest rank that did
/// not just stop because a peer failed. Catch2 assertions belong outside of f: they are not
/// thread-safe.
template <class F>
auto run_ranks(int n, F f) {
  using Result = std::invoke_result_t<F&, Communicator&>;
  using Kept = std::conditional_t<std::is_void_v<Result>, bool, Result>;
  std::vector<std::optional<Kept>> results(static_cast<std::size_t>(n));
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(n));
  std::vector<std::exception_ptr> consequences(static_cast<std::size_t>(n));

  LocalWorld world(n);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < results.size(); ++i) {
    threads.emplace_back([&, i] {
      Communicator& communicator = world.rank(static_cast<int>(i));
      try {
        if constexpr (std::is_void_v<Result>) {
          f(communicator);
        } else {
          results[i].emplace(f(communicator));
        }
      } catch (const PeerFailed&) {
        consequences[i] = std::current_exception();
      } catch (...) {
        errors[i] = std::current_exception();
        communicator.announce_failure();
      }
      communicator.acknowledge_failure();  // nobody need wait for this rank
    });
  }
  for (std::thread& thread : threads) thread.join();

  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  for (const auto& error : consequences) {
    if (error) std::rethrow_exception(error);
  }
  if constexpr (!std::is_void_v<Result>) {
    std::vector<Result> values;
    for (auto& result : results) values.push_back(std::move(*result));
    return values;
  }
}

}  // namespace zerolab
