#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "stages/base/dtype.hpp"
#include "stages/optim/loss_scaler.hpp"
#include "stages/optim/optimizer.hpp"
#include "stages/optim/schedule.hpp"

namespace zerolab {

/// Modules by C++ class, by name, and by the end of their names.
struct LeafModules {
  std::vector<std::string> classes, names, name_suffixes;
};

/// `zero_optimization` in the configuration. Sizes are in elements.
struct ZeroSettings {
  int stage = 0;
  bool overlap_comm = false;  // DeepSpeed: true in stage 3 when not given
  Index reduce_bucket_size = 500'000'000;
  bool reduce_scatter = true;
  bool contiguous_gradients = true;
  bool reduce_every_micro_step = false;  // stages 0 and 1; the others always do
  bool enable_sanity_checks = false;
  LeafModules leaf_modules = {};

  // stage 3 only
  Index prefetch_bucket_size = 50'000'000;
  Index param_persistence_threshold = 100'000;
  Index model_persistence_threshold = std::numeric_limits<Index>::max();
  Index max_live_parameters = 1'000'000'000;
  Index max_reuse_distance = 1'000'000'000;
  bool log_trace_cache_warnings = false;
  bool auto_register_external_parameters = false;
  bool gather_16bit_weights_on_model_save = false;
};

/// `checkpoint.tag_validation`: what is done when ranks would save under different tags. All but
/// `fail` take rank 0's.
enum class TagValidation { ignore, warn, fail };

/// Everything that shapes a run beside the model, the data and the seed. Equal on every rank.
struct Settings {
  Index micro_batch = 1;  // train_micro_batch_size_per_gpu, sequences
  Index gradient_accumulation_steps = 1;
  bool activation_checkpointing = false;
  double gradient_clipping = 1.0;  // global L2 norm; 0 is off

  Dtype dtype = Dtype::fp32;        // of weights, gradients and activations: fp32, bf16 or fp16
  bool check_grad_overflow = true;  // bf16.check_grad_overflow; the other types always check
  LossScaleSettings loss_scale;     // fp16
  std::optional<Dtype> grad_accum_dtype = {};         // data_types.grad_accum_dtype
  std::optional<Dtype> communication_data_type = {};  // of gradients that are reduced
  bool prescale_gradients = false;
  double gradient_predivide_factor = 1;

  OptimizerSettings optimizer;
  ScheduleSettings schedule;
  ZeroSettings zero;
  TagValidation tag_validation = TagValidation::warn;

  Dtype accumulation_dtype() const { return grad_accum_dtype.value_or(dtype); }
  Dtype communication_dtype() const { return communication_data_type.value_or(dtype); }
};

}  // namespace zerolab
