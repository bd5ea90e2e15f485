#include "visualize/verify/reference.hpp"

#include <set>

#include "stages/model/parameter_state.hpp"
#include "stages/partition/layout.hpp"
#include "tests/support/catch.hpp"

namespace zerolab {
namespace {

using log::kWords;

template <typename Enum, typename Look>
void for_each(Look look) {
  for (std::size_t i = 0; i < kWords<Enum>.size(); ++i) look(static_cast<Enum>(i));
}

using Names = std::multiset<std::string>;

TEST_CASE("the reference knows the moves that the stages declare, and no other", "[verify]") {
  Names declared, known;
  for (const Move& move : legal_moves()) {
    declared.insert(std::string(name_of(move.from)) + " " + std::string(name_of(move.to)) + " " +
                    std::string(name_of(move.cause)));
  }
  for_each<log::Status>([&](log::Status from) {
    for_each<log::Status>([&](log::Status to) {
      for_each<log::Cause>([&](log::Cause cause) {
        if (!verify::known({from, to, cause})) return;
        known.insert(std::string(name_of(from)) + " " + std::string(name_of(to)) + " " +
                     std::string(name_of(cause)));
      });
    });
  });
  CHECK(known == declared);

  Names declared_of_gradients, known_of_gradients;
  for (const GradientMove& move : legal_gradient_moves()) {
    declared_of_gradients.insert(std::string(name_of(move.from)) + " " +
                                 std::string(name_of(move.to)));
  }
  for_each<log::GradientStatus>([&](log::GradientStatus from) {
    for_each<log::GradientStatus>([&](log::GradientStatus to) {
      if (!verify::legal(log::GradientMove{from, to})) return;
      known_of_gradients.insert(std::string(name_of(from)) + " " + std::string(name_of(to)));
    });
  });
  CHECK(known_of_gradients == declared_of_gradients);
}

TEST_CASE("the reference pads as the layouts do", "[verify]") {
  const std::vector<Index> sizes{33, 0, 5, 3, 1, 0};
  for (const int ranks : {1, 2, 3, 4, 7}) {
    log::Run run;
    run.world_size = static_cast<log::Count>(ranks);
    for (const Index size : sizes) {
      run.parameters.push_back({"p", static_cast<log::Count>(size), true, false});
    }
    run.stage = 3;
    const verify::Padding pieces(run);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      CHECK(pieces.elements(i) == static_cast<log::Count>(PieceLayout{sizes[i], ranks}.padded()));
    }
    run.stage = 1;
    const verify::Padding flat(run);
    const FlatLayout layout(sizes, ranks);
    CHECK(flat.flat() == static_cast<log::Count>(layout.padded()));
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      CHECK(flat.elements(i) ==
            static_cast<log::Count>(layout.padded_parameter(static_cast<Index>(i)).size()));
    }
  }
}

}  // namespace
}  // namespace zerolab
