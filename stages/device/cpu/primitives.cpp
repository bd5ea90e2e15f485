#include "stages/device/cpu/primitives.hpp"

#include <fmt/format.h>

#include <string>

// From the OpenMP runtime that oneDNN is linked with. It sets a value of the calling thread only.
extern "C" void omp_set_num_threads(int);

namespace zerolab {
namespace {

onednn::Context make_context() {
  onednn::Context context{dnnl::engine(dnnl::engine::kind::cpu, 0), {}};
  context.attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  // Else ONEDNN_DEFAULT_FPMATH_MODE could round operands to bf16.
  context.attributes.set_fpmath_mode(dnnl::fpmath_mode::strict);
  return context;
}

}  // namespace

Primitives::Primitives(Ledger& ledger, int threads)
    : ledger_(ledger), threads_(threads), context_(make_context()), stream_(context_.engine) {}

Primitives::Prepared Primitives::prepare(const Call& call,
                                         std::initializer_list<Argument> arguments) const {
  try {
    const onednn::Descriptor descriptor = describe(call, context_);
    const auto layout = [&](int name) {
      return descriptor.query_md(dnnl::query::exec_arg_md, name);
    };
    Prepared prepared{dnnl::primitive(descriptor.get()), {}, 0};
    for (const Argument& argument : arguments) {
      prepared.arguments.emplace(
          argument.name, dnnl::memory(layout(argument.name), context_.engine, DNNL_MEMORY_NONE));
    }
    const onednn::Layout scratchpad = descriptor.scratchpad_desc();
    prepared.scratchpad_bytes = static_cast<Index>(scratchpad.get_size());
    if (prepared.scratchpad_bytes > 0) {
      prepared.arguments.emplace(DNNL_ARG_SCRATCHPAD,
                                 dnnl::memory(scratchpad, context_.engine, DNNL_MEMORY_NONE));
    }
    return prepared;
  } catch (const dnnl::error& error) {
    throw Error(Code::internal,
                fmt::format("oneDNN {} cannot prepare a {}: {}", onednn::version(), name_of(call),
                            error.message),
                "");
  }
}

void Primitives::run(const Call& call, std::initializer_list<Argument> arguments) {
  // Here and not once: the number belongs to the thread, and the primitive is made for it.
  omp_set_num_threads(threads_);
  auto found = prepared_.find(call);
  if (found == prepared_.end()) found = prepared_.emplace(call, prepare(call, arguments)).first;
  Prepared& prepared = found->second;

  Buffer scratchpad;
  if (prepared.scratchpad_bytes > 0) {
    scratchpad = ledger_.allocate(prepared.scratchpad_bytes, Category::workspace,
                                  std::string(name_of(call)) + " scratchpad");
    prepared.arguments.at(DNNL_ARG_SCRATCHPAD).set_data_handle(scratchpad.data());
  }
  for (const Argument& argument : arguments) {
    prepared.arguments.at(argument.name).set_data_handle(const_cast<void*>(argument.data));
  }
  prepared.primitive.execute(stream_, prepared.arguments);
  stream_.wait();
}

}  // namespace zerolab
