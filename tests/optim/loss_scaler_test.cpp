#include "stages/optim/loss_scaler.hpp"

#include <string>
#include <vector>

#include "tests/support/catch.hpp"

// Against tables worked out by hand from the rule (stages/optim/loss_scaler.hpp).

using namespace zerolab;

namespace {

// One letter a step: '.' is a good one, 'x' an overflow. The scale after each.
std::vector<double> scales(LossScaler scaler, const std::string& steps) {
  std::vector<double> after;
  for (const char step : steps) {
    CHECK(scaler.update(step == 'x'));
    after.push_back(scaler.scale());
  }
  return after;
}

LossScaleSettings dynamic(Index window, Index hysteresis) {
  LossScaleSettings settings;
  settings.initial_scale_power = 4;
  settings.loss_scale_window = window;
  settings.hysteresis = hysteresis;
  return settings;
}

using Scales = std::vector<double>;

}  // namespace

TEST_CASE("without settings nothing is scaled, and overflows change nothing", "[loss scale]") {
  CHECK(LossScaler().scale() == 1);
  CHECK_FALSE(LossScaler().dynamic());
  CHECK(scales(LossScaler(), "x.xx...") == Scales(7, 1.0));
}

TEST_CASE("a fixed loss scale never changes and is never too low", "[loss scale]") {
  LossScaleSettings settings = dynamic(1, 1);
  settings.loss_scale = 0.5;  // below min_loss_scale, which is about the dynamic one
  const LossScaler scaler(settings);
  CHECK_FALSE(scaler.dynamic());
  CHECK(scaler.scale() == 0.5);
  CHECK(scales(scaler, "xxxx....x") == Scales(9, 0.5));
}

TEST_CASE("a dynamic loss scale starts at its power of two", "[loss scale]") {
  CHECK(LossScaler(LossScaleSettings{}).scale() == 65536);
  CHECK(LossScaler(LossScaleSettings{}).dynamic());
  CHECK(LossScaler(dynamic(2, 1)).scale() == 16);
}

TEST_CASE("a loss scale doubles after its window and one more step, then after each window",
          "[loss scale]") {
  CHECK(scales(LossScaler(dynamic(1, 1)), ".....") == Scales{16, 32, 64, 128, 256});
  CHECK(scales(LossScaler(dynamic(2, 1)), "........") == Scales{16, 16, 32, 32, 64, 64, 128, 128});
  CHECK(scales(LossScaler(dynamic(3, 1)), "..........") ==
        Scales{16, 16, 16, 32, 32, 32, 64, 64, 64, 128});
  const Scales of_default = scales(LossScaler(LossScaleSettings{}), std::string(2001, '.'));
  CHECK(of_default[999] == 65536);
  CHECK(of_default[1000] == 2 * 65536);
  CHECK(of_default[1999] == 2 * 65536);
  CHECK(of_default[2000] == 4 * 65536);
}

TEST_CASE("an overflow halves the loss scale and starts the window anew", "[loss scale]") {
  CHECK(scales(LossScaler(dynamic(2, 1)), "xx...x..x....") ==
        Scales{8, 4, 4, 4, 8, 4, 4, 4, 2, 2, 2, 4, 4});
  CHECK(scales(LossScaler(dynamic(2, 1)), "....x.....") ==
        Scales{16, 16, 32, 32, 16, 16, 16, 32, 32, 64});
}

TEST_CASE("hysteresis forgives the first overflows, and those after each doubling",
          "[loss scale]") {
  CHECK(scales(LossScaler(dynamic(2, 2)), "xxx") == Scales{16, 8, 4});
  CHECK(scales(LossScaler(dynamic(2, 3)), "xxxx") == Scales{16, 16, 8, 4});
  // Forgiven once, halved although good steps lay between, forgiven again after the doubling. Even
  // one that is forgiven starts the window anew.
  CHECK(scales(LossScaler(dynamic(2, 2)), "x.x...xx") == Scales{16, 16, 8, 8, 8, 16, 16, 8});
  CHECK(scales(LossScaler(dynamic(2, 2)), "..x...") == Scales{16, 16, 16, 16, 16, 32});
}

TEST_CASE("with consecutive hysteresis only overflows in a row are counted", "[loss scale]") {
  LossScaleSettings settings = dynamic(4, 2);
  settings.consecutive_hysteresis = true;
  CHECK(scales(LossScaler(settings), "x.x.x.xx.xxx") ==
        Scales{16, 16, 16, 16, 16, 16, 16, 8, 8, 8, 4, 2});
  settings.consecutive_hysteresis = false;
  CHECK(scales(LossScaler(settings), "x.x.x.xx") == Scales{16, 16, 8, 8, 4, 4, 2, 1});
}

TEST_CASE("a loss scale is halved no further than to its minimum", "[loss scale]") {
  LossScaleSettings settings = dynamic(2, 1);
  settings.initial_scale_power = 3;
  settings.min_loss_scale = 3;
  LossScaler scaler(settings);
  CHECK(scaler.update(true));
  CHECK(scaler.scale() == 4);
  CHECK(scaler.update(true));
  CHECK(scaler.scale() == 3);
  CHECK_FALSE(scaler.update(true));
  CHECK(scaler.scale() == 3);
  // It may grow from there, and comes down the same way.
  for (int i = 0; i < 3; ++i) CHECK(scaler.update(false));
  CHECK(scaler.scale() == 6);
  CHECK(scaler.update(true));
  CHECK(scaler.scale() == 3);
  CHECK_FALSE(scaler.update(true));
}

TEST_CASE("an overflow at the minimum is too much, unless it is forgiven", "[loss scale]") {
  LossScaleSettings settings = dynamic(2, 3);
  settings.initial_scale_power = 0;
  LossScaler scaler(settings);
  CHECK(scaler.update(true));
  CHECK(scaler.update(true));
  CHECK_FALSE(scaler.update(true));
  CHECK(scaler.scale() == 1);
  settings.min_loss_scale = 8;  // above the initial one
  settings.hysteresis = 1;
  CHECK_FALSE(LossScaler(settings).update(true));
}
