// L2: query_nodes by itself. It is pure, answers for every node, and refuses what makes no sense.
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/checks.h"
#include "tests/conformance/plugin_under_test.h"
#include "tests/conformance/profile.h"
#include "tests/conformance/verdict_rules.h"

namespace pavo::conformance {
namespace {

using test::Backend;
using test::OpCase;
using test::Random;

// A backend without a device, and the caps that it is asked with.
struct Asked {
  std::unique_ptr<ValueList> caps;  // of a profile
  std::unique_ptr<Backend> backend;

  explicit Asked(Context& context) {
    test::BackendConfig config = context.config();
    if (!context.options().profile.empty()) {
      auto profile = read_profile(context.options().profile);
      if (!profile.ok()) {
        throw std::runtime_error(profile.status().message());
      }
      caps = std::move(profile).value();
      config.caps = caps->get();
      config.open_device = false;
    }
    backend = std::make_unique<Backend>(config);
  }
};

bool can_ask(Context& context) {
  return !context.options().profile.empty() || has_device(context);
}

// Every family of an op at its base sizes, or at others.
template <typename Visit>
void for_each_case(Context& context, const OpName& op, Visit visit) {
  Random random(context.options().seed);
  for (const Family& family : families_of(op.op)) {
    context.stage(std::string(op.name) + " " + family.name);
    visit(family.make(random, base_sizes(family)));
  }
  context.stage("");
}

// Threads that ask different things at the same time do not get each other's answers.
void check_threads(
    Context& context,
    const Backend& backend,
    const std::vector<OpCase>& cases,
    const std::vector<std::string>& answers) {
  constexpr size_t kThreads = 4;
  std::vector<std::future<size_t>> threads;
  for (size_t first = 0; first < kThreads; ++first) {
    threads.push_back(std::async(std::launch::async, [&, first] {
      size_t wrong = 0;
      for (size_t i = 0; i < 2 * cases.size(); ++i) {
        const size_t at = (first + i) % cases.size();
        wrong += verdict_text(ask(backend, cases[at])) != answers[at] ? 1 : 0;
      }
      return wrong;
    }));
  }
  size_t wrong = 0;
  for (std::future<size_t>& thread : threads) {
    wrong += thread.get();
  }
  context.expect(
      wrong == 0,
      "expected the same answers as in one thread, " + std::to_string(wrong) + " are different");
}

void check_pure(Context& context, const OpName& op) {
  const Asked asked(context);
  const Asked other(context);
  // Equal caps at other addresses.
  std::vector<pavo_value> items;
  std::vector<const pavo_value*> pointers;
  for (uint32_t i = 0; i < asked.backend->caps()->count; ++i) {
    items.push_back(*asked.backend->caps()->items[i]);
  }
  for (const pavo_value& item : items) {
    pointers.push_back(&item);
  }
  const pavo_values copied = {
      sizeof(pavo_values), static_cast<uint32_t>(pointers.size()), pointers.data()};
  test::BackendConfig config = context.config();
  config.caps = &copied;
  config.open_device = false;
  const Backend without_device(config);
  std::vector<OpCase> cases;
  std::vector<std::string> answers;
  for_each_case(context, op, [&](const OpCase& test_case) {
    const pavo_verdict first = ask(*asked.backend, test_case);
    check_verdict(context, first, test_case.inputs.size() + test_case.outputs.size());
    const auto same = [&](const Backend& backend, const char* who) {
      const std::string second = verdict_text(ask(backend, test_case));
      context.expect(
          second == verdict_text(first),
          std::string("expected the same answer from ") + who + ": " + verdict_text(first) +
              "; found: " + second);
    };
    same(*asked.backend, "a second call");
    same(*other.backend, "another instance");
    same(without_device, "an instance without a device");
    cases.push_back(test_case);
    answers.push_back(verdict_text(first));
  });
  context.stage("several threads at a time");
  check_threads(context, *asked.backend, cases, answers);
}

// Nodes of one graph get the answers that they get alone, each of them.
void check_whole_graph(Context& context, const OpName& op) {
  const Asked asked(context);
  std::vector<OpCase> cases;
  for_each_case(context, op, [&](OpCase test_case) {
    // One bucket serves a whole graph.
    if (cases.empty() || (cases[0].bucket.tokens == test_case.bucket.tokens &&
                          cases[0].bucket.sequences == test_case.bucket.sequences &&
                          cases[0].bucket.kv_rows == test_case.bucket.kv_rows)) {
      cases.push_back(std::move(test_case));
    }
  });
  std::vector<const pavo_tensor*> tensors;
  std::vector<std::vector<uint32_t>> operands;
  std::vector<pavo_node> nodes;
  for (const OpCase& test_case : cases) {
    const auto first = static_cast<uint32_t>(tensors.size());
    const auto moved = [&](const std::vector<uint32_t>& list) {
      operands.push_back(list);
      for (uint32_t& index : operands.back()) {
        index += index == PAVO_NO_TENSOR ? 0 : first;
      }
      return operands.size() - 1;
    };
    pavo_node node = test::CaseGraph(test_case).node;
    moved(test_case.inputs);
    moved(test_case.outputs);
    node.id = nodes.size() + 1;
    nodes.push_back(node);
    for (const test::HostTensor& tensor : test_case.tensors) {
      tensors.push_back(&tensor.desc);
    }
  }
  std::vector<const pavo_node*> node_pointers;
  std::vector<pavo_verdict> verdicts(nodes.size(), poisoned_verdict());
  std::vector<pavo_verdict*> verdict_pointers;
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].inputs = operands[2 * i].data();
    nodes[i].outputs = operands[2 * i + 1].data();
    node_pointers.push_back(&nodes[i]);
    verdict_pointers.push_back(&verdicts[i]);
  }
  pavo_graph graph{};
  graph.struct_size = sizeof graph;
  graph.tensor_count = static_cast<uint32_t>(tensors.size());
  graph.tensors = tensors.data();
  graph.node_count = static_cast<uint32_t>(nodes.size());
  graph.nodes = node_pointers.data();
  graph.bucket = &cases[0].bucket;
  context.stage(std::string("a graph of ") + std::to_string(nodes.size()) + " " + op.name);
  const Backend& backend = *asked.backend;
  pavo_error error = test::empty_error();
  test::require_ok(
      backend.api().query_nodes(
          backend.plugin(), backend.caps(), &graph, verdict_pointers.data(), &error),
      error,
      "query_nodes");
  for (size_t i = 0; i < nodes.size(); ++i) {
    check_verdict(context, verdicts[i], cases[i].inputs.size() + cases[i].outputs.size());
    const bool alone = ask(backend, cases[i]).decision != PAVO_REFUSE;
    context.expect(
        alone == (verdicts[i].decision != PAVO_REFUSE),
        "expected node " + std::to_string(i) + " to be " + (alone ? "accepted" : "refused") +
            " as it is alone");
  }
}

// Asks about a node that makes no sense: a refusal with a reason, or an error with a message.
void expect_nonsense_refused(
    Context& context, const Backend& backend, const OpCase& test_case, const std::string& what) {
  const test::CaseGraph graph(test_case);
  pavo_verdict verdict = poisoned_verdict();
  pavo_verdict* const verdicts[] = {&verdict};
  pavo_error error = poisoned_error();
  const int32_t code =
      backend.api().query_nodes(backend.plugin(), backend.caps(), &graph.graph, verdicts, &error);
  if (code != PAVO_OK) {
    checked_error(context, code, error);
    return;
  }
  check_verdict(context, verdict, test_case.inputs.size() + test_case.outputs.size());
  context.expect(
      verdict.decision == PAVO_REFUSE, "expected a refusal of " + what + ", found an acceptance");
}

struct Nonsense {
  const char* what;
  void (*make)(OpCase& test_case);
};

pavo_tensor& first_input(OpCase& test_case) {
  return test_case.tensors[test_case.inputs[0]].desc;
}

constexpr Nonsense kNonsense[] = {
    {"a missing input", [](OpCase& c) { c.inputs[0] = PAVO_NO_TENSOR; }},
    {"no inputs", [](OpCase& c) { c.inputs.clear(); }},
    {"no outputs", [](OpCase& c) { c.outputs.clear(); }},
    {"too many inputs", [](OpCase& c) { c.inputs.resize(40, c.inputs[0]); }},
    {"an unknown type", [](OpCase& c) { first_input(c).type = 999; }},
    {"an input of i32", [](OpCase& c) { first_input(c).type = PAVO_TYPE_I32; }},
    {"an unknown role", [](OpCase& c) { first_input(c).role = 77; }},
    {"an input of rank 0", [](OpCase& c) { first_input(c).rank = 0; }},
    {"a rank of 5", [](OpCase& c) { first_input(c).rank = 5; }},
    {"a negative rank", [](OpCase& c) { first_input(c).rank = -1; }},
    {"a negative dimension", [](OpCase& c) { first_input(c).shape[0] = -3; }},
    {"a huge dimension", [](OpCase& c) { first_input(c).shape[0] = INT64_MAX / 2; }},
    {"a last dimension that fits nothing",
     [](OpCase& c) { first_input(c).shape[first_input(c).rank - 1] += 1; }},
    {"an op that does not exist", [](OpCase& c) { c.op = 9999; }},
    {"a negative op", [](OpCase& c) { c.op = -1; }}};

// Pads the params with `tail`, as a host of a later minor would.
void grow_params(OpCase* test_case, uint8_t tail) {
  test_case->params.resize(test_case->params.size() + 8, std::byte{tail});
  const auto size = static_cast<uint32_t>(test_case->params.size());
  std::memcpy(test_case->params.data(), &size, sizeof size);
}

void check_nonsense(Context& context, const OpName& op) {
  const Asked asked(context);
  const Backend& backend = *asked.backend;
  for_each_case(context, op, [&](const OpCase& test_case) {
    for (const Nonsense& nonsense : kNonsense) {
      OpCase broken = test_case;
      nonsense.make(broken);
      expect_nonsense_refused(context, backend, broken, nonsense.what);
    }
    OpCase broken = test_case;
    grow_params(&broken, 0xff);
    expect_nonsense_refused(context, backend, broken, "parameters with unknown bytes");
    broken = test_case;
    grow_params(&broken, 0);
    context.expect(
        verdict_text(ask(backend, broken)) == verdict_text(ask(backend, test_case)),
        "expected longer parameters to be taken if their tail is zero");
  });
}

// Tensors and verdicts of a host of a later minor.
void check_grown_structs(Context& context, const OpName& op) {
  const Asked asked(context);
  const Backend& backend = *asked.backend;
  struct LongTensor {
    pavo_tensor tensor;
    uint64_t tail;
  };
  struct LongVerdict {
    pavo_verdict verdict;
    uint64_t tail;
  };
  for_each_case(context, op, [&](const OpCase& test_case) {
    const std::string alone = verdict_text(ask(backend, test_case));
    const bool accepted = ask(backend, test_case).decision != PAVO_REFUSE;
    for (const uint64_t tail : {uint64_t{0}, uint64_t{1}}) {
      test::CaseGraph graph(test_case);
      LongTensor grown = {test_case.tensors[0].desc, tail};
      grown.tensor.struct_size = sizeof grown;
      graph.tensors[0] = &grown.tensor;
      LongVerdict verdict = {poisoned_verdict(), 0x5a5a5a5a5a5a5a5a};
      verdict.verdict.struct_size = sizeof verdict;
      pavo_verdict* const verdicts[] = {&verdict.verdict};
      pavo_error error = poisoned_error();
      const int32_t code = backend.api().query_nodes(
          backend.plugin(), backend.caps(), &graph.graph, verdicts, &error);
      context.expect(
          verdict.tail == 0x5a5a5a5a5a5a5a5a, "expected nothing behind the verdict to be written");
      verdict.verdict.struct_size = sizeof(pavo_verdict);
      if (tail == 0) {
        context.expect(
            code == PAVO_OK && verdict_text(verdict.verdict) == alone,
            "expected a longer tensor to be taken if its tail is zero");
      } else if (accepted) {
        context.expect(
            code == PAVO_ERROR_UNSUPPORTED_FIELD ||
                (code == PAVO_OK && verdict.verdict.decision == PAVO_REFUSE),
            "expected a tensor with unknown bytes to be refused");
      }
    }
  });
}

}  // namespace

std::vector<Check> predicate_checks() {
  using Body = void (*)(Context&, const OpName&);
  const auto bind = [](const OpName& op, Body body) {
    return [op, body](Context& context) {
      if (can_ask(context)) {
        body(context, op);
      }
    };
  };
  std::vector<Check> checks;
  for (const OpName& op : all_ops()) {
    const std::string name = op.name;
    checks.push_back(
        {"L2.pure." + name, "the same question gets the same answer", bind(op, check_pure)});
    checks.push_back(
        {"L2.graph." + name,
         "every node of a graph is answered, as it is alone",
         bind(op, check_whole_graph)});
    checks.push_back(
        {"L2.nonsense." + name,
         "nodes that make no sense are refused with a reason",
         bind(op, check_nonsense)});
    checks.push_back(
        {"L2.structs." + name,
         "structs of a later minor are read as far as both sides know",
         bind(op, check_grown_structs)});
  }
  return checks;
}

}  // namespace pavo::conformance
