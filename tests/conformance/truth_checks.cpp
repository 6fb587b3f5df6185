// L2: what accepted nodes compute. Sizes are sampled, and then chosen around every bound that a
// verdict declares; every kernel that can be forced is forced.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "tests/conformance/checks.h"
#include "tests/conformance/plugin_under_test.h"
#include "tests/conformance/verdict_rules.h"

namespace pavo::conformance {
namespace {

using test::Backend;
using test::OpCase;
using test::OpRun;
using test::Random;

constexpr int64_t kMostMixed = 40;

// Values of an axis that code tends to get wrong: around powers of two, small and odd ones.
std::vector<int64_t> values_of(const Axis& axis) {
  const int64_t least = (axis.least + axis.multiple - 1) / axis.multiple * axis.multiple;
  std::set<int64_t> values = {least, axis.base, axis.most / axis.multiple * axis.multiple};
  for (int64_t power = 1; power <= axis.most; power *= 2) {
    for (const int64_t near : {power - 1, power, power + 1}) {
      for (const int64_t value : {near, near * axis.multiple}) {
        if (value >= axis.least && value <= axis.most && value % axis.multiple == 0) {
          values.insert(value);
        }
      }
    }
  }
  return {values.begin(), values.end()};
}

// The sizes of a family that are to be tried, each once.
class SizeQueue {
 public:
  SizeQueue(const Family& family, Random& random) : family_(family) {
    const Sizes base = base_sizes(family);
    add(base);
    std::vector<std::vector<int64_t>> values;
    for (const Axis& axis : family.axes) {
      values.push_back(values_of(axis));
    }
    const auto pick = [&](size_t axis, int64_t most) {
      const auto& list = values[axis];
      const auto end = std::upper_bound(list.begin(), list.end(), std::max(most, list.front()));
      return list[static_cast<size_t>(random.integer(0, end - list.begin() - 1))];
    };
    for (int i = 0; i < family.samples; ++i) {
      Sizes sizes = base;
      const size_t axis = static_cast<size_t>(i) % family.axes.size();
      sizes[axis] = pick(axis, family.axes[axis].most);
      add(sizes);
    }
    for (int i = 0; i < family.mixtures; ++i) {
      Sizes sizes;
      for (size_t axis = 0; axis < family.axes.size(); ++axis) {
        sizes.push_back(pick(axis, kMostMixed * family.axes[axis].multiple));
      }
      add(sizes);
    }
  }

  // Sizes make no difference.
  void clear() { queue_.clear(); }

  bool next(Sizes* out) {
    if (queue_.empty()) {
      return false;
    }
    *out = queue_.front();
    queue_.pop_front();
    return true;
  }

  // Adds what lies around the bound that the verdict about these sizes declares.
  void learn(const Sizes& sizes, const pavo_verdict& verdict) {
    if (verdict.decision != PAVO_REFUSE) {
      if (family_.kv_rows) {
        around(sizes, 0, verdict.kv_rows_max);
        around(sizes, 0, verdict.kv_rows_min);
      }
      return;
    }
    if (verdict.expected <= 0 || (verdict.reason != PAVO_REASON_SHAPE_RANGE &&
                                  verdict.reason != PAVO_REASON_SHAPE_MULTIPLE)) {
      return;
    }
    for (size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] == verdict.actual) {
        around(sizes, axis, verdict.expected);
        around(sizes, axis, 2 * verdict.expected);
      }
    }
  }

 private:
  void around(Sizes sizes, size_t axis, int64_t bound) {
    const Axis& limits = family_.axes[axis];
    if (bound > limits.most) {
      return;
    }
    for (const int64_t value :
         {bound - limits.multiple, bound, bound + limits.multiple, bound - 1, bound + 1}) {
      if (value >= limits.least && value % limits.multiple == 0) {
        sizes[axis] = value;
        add(sizes);
      }
    }
  }

  void add(const Sizes& sizes) {
    if (seen_.insert(sizes).second) {
      queue_.push_back(sizes);
    }
  }

  const Family& family_;
  std::set<Sizes> seen_;
  std::deque<Sizes> queue_;
};

// What may be different about the memory of the same tensors.
struct Layout {
  const char* name;
  void (*apply)(OpCase& test_case);
};

void reorder(OpCase& test_case, bool outputs) {
  for (test::HostTensor& tensor : test_case.tensors) {
    if (tensor.desc.role == PAVO_ROLE_ACTIVATION && tensor.is_output == outputs) {
      tensor = test::reordered(tensor);
    }
  }
}

constexpr Layout kLayouts[] = {
    // No verdict can ask for more: where a tensor lies is decided later.
    {", odd offsets", [](OpCase& test_case) { test_case.activation_shift = 1; }},
    {", inputs in another order", [](OpCase& test_case) { reorder(test_case, false); }},
    {", outputs in another order", [](OpCase& test_case) { reorder(test_case, true); }}};

class Truth {
 public:
  Truth(Context& context, const OpName& op) : context_(context), op_(op) {}

  void run() {
    backends_[""] = std::make_unique<Backend>(context_.config());
    for (const std::string& kernel : backends_[""]->variants(op_.name)) {
      test::BackendConfig config = context_.config();
      config.options["force_variant"] = std::string(op_.name) + "=" + kernel;
      backends_[kernel] = std::make_unique<Backend>(config);
    }
    Random random(context_.options().seed);
    for (const Family& family : families_of(op_.op)) {
      SizeQueue queue(family, random);
      Sizes sizes;
      while (!context_.enough() && queue.next(&sizes)) {
        const OpCase test_case = family.make(random, sizes);
        try_case(family, sizes, "", test_case, &queue);
      }
      for (const Layout& layout : kLayouts) {
        OpCase test_case = family.make(random, base_sizes(family));
        layout.apply(test_case);
        try_case(family, base_sizes(family), layout.name, test_case, nullptr);
      }
    }
    finish();
  }

 private:
  // *queue learns from the verdicts, if there is one.
  void try_case(
      const Family& family,
      const Sizes& sizes,
      const char* layout,
      const OpCase& test_case,
      SizeQueue* queue) {
    const std::string place =
        std::string(op_.name) + " " + family.name + " " + sizes_text(family, sizes) + layout;
    Judge judge;
    ++cases_;
    for (const auto& [kernel, backend] : backends_) {
      context_.stage(place + (kernel.empty() ? "" : ", kernel " + kernel));
      const OpRun run = test::run_case(*backend, test_case);
      check_verdict(context_, run.verdict, test_case.inputs.size() + test_case.outputs.size());
      if (queue != nullptr) {
        queue->learn(sizes, run.verdict);
      }
      if (run.refused()) {
        first_refusal_ = first_refusal_.empty() ? run.verdict.text : first_refusal_;
        check_refused(run);
        if (run.verdict.reason == PAVO_REASON_OP) {
          says_absent_ = true;
          if (queue != nullptr) {
            queue->clear();
          }
        }
        continue;
      }
      check_forced(kernel, run.verdict);
      accepted_ += kernel.empty() ? 1 : 0;
      ++runs_;
      if (!judge) {
        judge = family.judge(test_case);
      }
      check_run(test_case, run, judge);
    }
  }

  void check_refused(const OpRun& run) {
    context_.expect(
        run.code != PAVO_OK, "expected plan_create to refuse what the predicate refused");
    context_.expect(!run.message.empty(), "expected a message with the error of plan_create");
  }

  void check_forced(const std::string& kernel, const pavo_verdict& verdict) {
    reached_[verdict.variant] = true;
    context_.expect(
        kernel.empty() || kernel == verdict.variant,
        "expected the forced kernel, found " + std::string(verdict.variant));
  }

  void check_run(const OpCase& test_case, const OpRun& run, const Judge& judge) {
    if (run.code != PAVO_OK) {
      context_.fault(
          (run.code == PAVO_ERROR_UNSUPPORTED ? "accepted, and then unsupported: "
                                              : "expected an accepted node to run, found code " +
                                                    std::to_string(run.code) + ": ") +
          run.message);
      return;
    }
    for (const std::string& damage : run.damage) {
      context_.fault("expected nothing else to be written, found changed " + damage);
    }
    for (const std::string& line : judge(run)) {
      context_.fault(line);
    }
    if (test_case.bucket.kv_rows > 0) {
      context_.expect(
          test_case.bucket.kv_rows >= run.verdict.kv_rows_min &&
              test_case.bucket.kv_rows <= run.verdict.kv_rows_max,
          "expected a verdict for " + std::to_string(test_case.bucket.kv_rows) +
              " K/V rows to hold for them, found " + std::to_string(run.verdict.kv_rows_min) +
              " to " + std::to_string(run.verdict.kv_rows_max));
    }
  }

  void finish() {
    context_.stage(op_.name);
    context_.expect(
        runs_ == 0 || !says_absent_,
        "expected another reason of a refusal than PAVO_REASON_OP, since other nodes of the op are "
        "accepted");
    if (runs_ == 0) {
      context_.skip("every case is refused: " + first_refusal_);
      return;
    }
    std::string kernels;
    for (const auto& [kernel, backend] : backends_) {
      context_.expect(
          kernel.empty() || reached_.count(kernel) != 0,
          "expected the kernel " + kernel + " to accept a case when it is forced");
    }
    for (const auto& [kernel, reached] : reached_) {
      kernels += (kernels.empty() ? "" : ", ") + kernel;
    }
    context_.note(
        std::to_string(accepted_) + " of " + std::to_string(cases_) + " cases accepted, " +
        std::to_string(runs_) + " runs; kernels: " + kernels);
  }

  Context& context_;
  const OpName& op_;
  std::map<std::string, std::unique_ptr<Backend>> backends_;  // by forced kernel
  std::map<std::string, bool> reached_;
  std::string first_refusal_;
  int cases_ = 0;
  int accepted_ = 0;
  int runs_ = 0;
  bool says_absent_ = false;  // PAVO_REASON_OP
};

// Indices that lead nowhere in tables of a valid node: it runs or fails, and nothing else happens.
void check_harm(Context& context, const OpName& op) {
  const Backend backend(context.config());
  Random random(context.options().seed);
  int runs = 0;
  for (const Family& family : families_of(op.op)) {
    const OpCase whole = family.make(random, base_sizes(family));
    if (ask(backend, whole).decision == PAVO_REFUSE) {
      continue;
    }
    for (size_t i = 0; i < whole.tensors.size(); ++i) {
      const test::HostTensor& tensor = whole.tensors[i];
      if (tensor.desc.role != PAVO_ROLE_STEP || tensor.desc.type != PAVO_TYPE_I32 ||
          tensor.elements() == 0) {
        continue;
      }
      for (const int32_t value : {-1, INT32_MIN, INT32_MAX, 1 << 20}) {
        for (const int64_t at : {int64_t{0}, tensor.elements() - 1}) {
          context.stage(
              std::string(op.name) + " " + family.name + ", " + std::to_string(value) + " at " +
              std::to_string(at) + " of step tensor " + std::to_string(i));
          OpCase broken = whole;
          std::memcpy(
              broken.tensors[i].bytes.data() + broken.tensors[i].offset(at), &value, sizeof value);
          const OpRun run = test::run_case(backend, broken);
          ++runs;
          context.expect(
              run.code == PAVO_OK || run.code == PAVO_ERROR_NODE_FAILED,
              "expected the node to run or to fail, found code " + std::to_string(run.code));
          context.expect(
              run.code == PAVO_OK || !run.message.empty(), "expected a message with the failure");
          for (const std::string& damage : run.damage) {
            context.fault("expected nothing else to be written, found changed " + damage);
          }
        }
      }
    }
    context.stage(std::string(op.name) + " " + family.name + " after that");
    const OpRun run = test::run_case(backend, whole);
    const std::vector<std::string> lines =
        run.code == PAVO_OK ? family.judge(whole)(run) : std::vector<std::string>{run.message};
    context.expect(lines.empty(), lines.empty() ? "" : "expected it to work: " + lines.front());
  }
  context.stage("");
  if (runs == 0) {
    context.skip("no node with indices is accepted");
  }
  context.note(std::to_string(runs) + " runs");
}

// Runs `check` on a device, or says that there is none.
template <typename Check>
auto with_device(const OpName& op, Check check) {
  return [op, check](Context& context) {
    if (!context.options().profile.empty()) {
      context.skip("a profile computes nothing");
    } else if (has_device(context)) {
      check(context, op);
    }
  };
}

}  // namespace

std::vector<Check> truth_checks() {
  std::vector<Check> checks;
  for (const OpName& op : all_ops()) {
    checks.push_back(
        {std::string("L2.truth.") + op.name,
         std::string("accepted nodes of ") + op.name + " compute what ops.inc says, nothing else",
         with_device(op, [](Context& context, const OpName& own) { Truth(context, own).run(); })});
    checks.push_back(
        {std::string("L2.harm.") + op.name,
         std::string("bad indices of ") + op.name + " do no harm",
         with_device(op, check_harm)});
  }
  return checks;
}

}  // namespace pavo::conformance
