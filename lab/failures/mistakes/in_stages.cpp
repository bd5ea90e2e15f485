// Mistakes of those who write a stage. Each is a wrapper that does one thing more or less than the
// stage it wraps.
#include <utility>

#include "lab/failures/mistakes/mistake.hpp"
#include "lab/failures/wrappers/stage_wrapper.hpp"
#include "stages/engine/reduce_bucket.hpp"
#include "stages/model/parameter_state.hpp"

namespace zerolab {
namespace {

class ReleasesEarly : public StageWrapper {
 public:
  using StageWrapper::StageWrapper;
  void fetch(const Visit& visit) override {
    StageWrapper::fetch(visit);
    StageWrapper::release(visit);
  }
};

class NeverReleases : public StageWrapper {
 public:
  using StageWrapper::StageWrapper;
  void release(const Visit& /*visit*/) override {}
};

/// Moves parameters by itself, before or after the stage does.
class Moves : public StageWrapper {
 public:
  using StageWrapper::StageWrapper;

 protected:
  void move(Parameter& parameter, Status to, Cause cause, const Visit& visit) {
    ParameterState::move(parameter, to, cause, visit.module.name(), runtime().recorder);
  }
};

class ReleasesInFlight : public Moves {
 public:
  using Moves::Moves;
  void set_up(Model& model) override {
    Moves::set_up(model);
    parameters_ = &model.parameters();
  }
  void release(const Visit& visit) override {
    for (Parameter& parameter : *parameters_) {
      if (parameter.status() != Status::inflight) continue;
      move(parameter, Status::not_available, Cause::release, visit);
    }
    Moves::release(visit);
  }

 private:
  ParameterSet* parameters_ = nullptr;
};

class GathersTwice : public Moves {
 public:
  using Moves::Moves;
  void fetch(const Visit& visit) override {
    Moves::fetch(visit);
    for (Parameter* parameter : visit.module.reads()) {
      move(*parameter, Status::inflight, Cause::fetch, visit);
    }
  }
};

class WaitsWithoutGather : public Moves {
 public:
  using Moves::Moves;
  void fetch(const Visit& visit) override {
    for (Parameter* parameter : visit.module.reads()) {
      if (parameter->status() != Status::not_available) continue;
      move(*parameter, Status::available, Cause::fetch, visit);
    }
    Moves::fetch(visit);
  }
};

class ReleasesTwice : public Moves {
 public:
  using Moves::Moves;
  void release(const Visit& visit) override {
    Moves::release(visit);
    for (Parameter* parameter : visit.module.reads()) {
      move(*parameter, Status::not_available, Cause::release, visit);
    }
  }
};

class EndsUseTwice : public StageWrapper {
 public:
  using StageWrapper::StageWrapper;
  void release(const Visit& visit) override {
    StageWrapper::release(visit);
    for (Parameter* parameter : visit.module.reads()) {
      ParameterState::end_use(*parameter, visit.module.name(), runtime().recorder);
    }
  }
};

/// Goes on filling a bucket while a collective reads it.
class FillsBucketInFlight : public StageWrapper {
 public:
  FillsBucketInFlight(std::unique_ptr<Stage> inner, Runtime& runtime)
      : StageWrapper(std::move(inner), runtime), bucket_(runtime, 1) {}

  void gradient_ready(Parameter& parameter, MicroStep /*micro_step*/) override {
    const ReadyGradient gradient{&parameter, parameter.gradient, parameter.numel()};
    bucket_.add({&parameter, parameter.gradient, parameter.numel()}, parameter.numel());
    bucket_.close();
    bucket_.start({});
    bucket_.add({&parameter, parameter.gradient, parameter.numel()}, parameter.numel());
  }

 private:
  ReduceBucket bucket_;
};

/// Builds the whole model on every rank, to cut it afterwards.
class BuildsWholeFirst : public StageWrapper {
 public:
  using StageWrapper::StageWrapper;
  void set_up(Model& model) override {
    const Buffer whole =
        runtime().ledger.allocate(model.parameters().numel() * size_of(runtime().settings.dtype),
                                  Category::parameters, "the whole model, before it is cut");
    StageWrapper::set_up(model);
  }
};

/// Keeps what it has logged of every step: memory grows, and nobody gives it back.
class Leaks : public StageWrapper {
 public:
  using StageWrapper::StageWrapper;
  void publish() override {
    StageWrapper::publish();
    kept_.push_back(runtime().ledger.allocate(kBytes, Category::activations, "kept for a plot"));
  }

 private:
  static constexpr Index kBytes = Index{64} << 10;
  std::vector<Buffer> kept_;
};

template <typename Wrapper>
void in_stage(Training& training, int /*rank*/) {
  wrap_stage<Wrapper>(training);
}

}  // namespace

std::vector<Mistake> mistakes_in_stages() {
  return {
      {"early-release", "the stage lets a module's parameters go before the module runs",
       in_stage<ReleasesEarly>},
      {"never-released", "the stage never lets a parameter go", in_stage<NeverReleases>},
      {"released-twice", "the stage lets parameters go that are gone", in_stage<ReleasesTwice>},
      {"released-in-flight", "the stage lets a parameter go while its all-gather is on its way",
       in_stage<ReleasesInFlight>},
      {"gathered-twice", "the stage gathers what is whole already", in_stage<GathersTwice>},
      {"waited-without-gather", "the stage waits for an all-gather that it has not started",
       in_stage<WaitsWithoutGather>},
      {"use-ended-twice", "the stage ends a module's use of its parameters a second time",
       in_stage<EndsUseTwice>},
      {"bucket-in-flight", "the stage fills a bucket that a collective is reading",
       in_stage<FillsBucketInFlight>},
      {"whole-model-first", "every rank builds the whole model before it is partitioned",
       in_stage<BuildsWholeFirst>},
      {"leak", "something keeps 64 KiB of every step", in_stage<Leaks>},
  };
}

}  // namespace zerolab
