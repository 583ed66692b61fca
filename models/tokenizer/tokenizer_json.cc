#include "models/tokenizer/tokenizer_json.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/strict_json.h"
#include "models/tokenizer/code_points.h"
#include "nlohmann/json.hpp"

namespace longshort::models {
namespace {

constexpr JsonLimits kTokenizerLimits = {.depth = 16, .elements = int64_t{1} << 22};

// Writers have null for what is absent.
bool IsNull(const JsonView& node) { return node.is_absent() || node.value().is_null(); }

absl::StatusOr<bool> BooleanOr(bool if_absent, const JsonView& node) {
  return IsNull(node) ? absl::StatusOr<bool>(if_absent) : node.Boolean();
}

absl::Status CheckFalse(const JsonView& node) {
  LS_ASSIGN_OR_RETURN(const bool value, BooleanOr(false, node));
  return value ? node.Wrong("false") : absl::OkStatus();
}

absl::Status CheckType(const JsonView& node, std::string_view type) {
  return node.At("type").Is(type) ? absl::OkStatus() : node.Wrong("type", absl::StrFormat("\"%s\"", type));
}

// GPT-2's printable character of each byte: the byte itself where it is printable in Latin-1, otherwise the next one
// from U+0100 on.
absl::flat_hash_map<char32_t, uint8_t> BytesOfCharacters() {
  absl::flat_hash_map<char32_t, uint8_t> byte_of;
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    byte_of.emplace(printable ? static_cast<char32_t>(byte) : next++, static_cast<uint8_t>(byte));
  }
  return byte_of;
}

// The bytes that a symbol stands for; nullopt if it has other characters.
std::optional<std::string> PieceOf(std::string_view symbol) {
  static const auto* const byte_of = new absl::flat_hash_map<char32_t, uint8_t>(BytesOfCharacters());
  std::string piece;
  for (size_t i = 0; i < symbol.size();) {
    const CodePoint character = CodePointAt(symbol, i);
    const auto found = byte_of->find(character.value);
    if (found == byte_of->end()) return std::nullopt;
    piece.push_back(static_cast<char>(found->second));
    i += character.bytes;
  }
  return piece;
}

class BpeReader final {
 public:
  explicit BpeReader(int64_t vocabulary_size) : vocabulary_size_(vocabulary_size) {}

  absl::StatusOr<BpeFile> Read(const JsonView& top) {
    LS_RETURN_IF_ERROR(top.RefuseUnknown({"version", "truncation", "padding", "added_tokens", "normalizer",
                                          "pre_tokenizer", "post_processor", "decoder", "model"}));
    if (const JsonView version = top.At("version"); !version.is_absent() && !version.Is("1.0")) {
      return version.Wrong("\"1.0\"");
    }
    LS_RETURN_IF_ERROR(CheckNormalizer(top.At("normalizer")));
    const JsonView direction = top.At("truncation").At("direction");
    if (!IsNull(direction) && !direction.Is("Right")) return direction.Wrong("\"Right\"");
    LS_RETURN_IF_ERROR(ReadPreTokenizer(top.At("pre_tokenizer")));
    LS_RETURN_IF_ERROR(ReadModel(top.At("model")));
    LS_RETURN_IF_ERROR(ReadAddedTokens(top.At("added_tokens")));
    LS_RETURN_IF_ERROR(ReadPostProcessor(top.At("post_processor")));
    return std::move(file_);
  }

 private:
  static absl::Status CheckNormalizer(const JsonView& node) {
    constexpr std::string_view kWanted =
        "\"Sequence\" of no normalizers, or the normalizer null: texts are tokenized as they are";
    if (IsNull(node)) return absl::OkStatus();
    if (!node.is_object()) return node.Wrong("null");
    if (!node.At("type").Is("Sequence")) return node.Wrong("type", kWanted);
    LS_RETURN_IF_ERROR(node.RefuseUnknown({"type", "normalizers"}));
    const JsonView list = node.At("normalizers");
    return list.is_list() && list.size() == 0 ? absl::OkStatus() : list.Wrong("an empty list");
  }

  absl::Status ReadPreTokenizer(const JsonView& node) {
    if (!node.is_object()) return node.Wrong("the pre-tokenizer ByteLevel");
    LS_RETURN_IF_ERROR(CheckByteLevel(node));
    LS_ASSIGN_OR_RETURN(file_.add_prefix_space, node.Boolean("add_prefix_space"));
    const bool splits = !node.Has("use_regex") || node.At("use_regex").value() == true;
    return splits ? absl::OkStatus() : node.Wrong("use_regex", "true");
  }

  // Whether it is the pre-tokenizer or post-processor ByteLevel.
  static absl::Status CheckByteLevel(const JsonView& node) {
    LS_RETURN_IF_ERROR(CheckType(node, "ByteLevel"));
    LS_RETURN_IF_ERROR(node.RefuseUnknown({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    if (node.Has("use_regex")) LS_RETURN_IF_ERROR(node.Boolean("use_regex").status());
    LS_RETURN_IF_ERROR(node.Boolean("add_prefix_space").status());
    return node.Boolean("trim_offsets").status();
  }

  absl::Status ReadModel(const JsonView& node) {
    // Older files do not name the type.
    if (node.Has("type")) LS_RETURN_IF_ERROR(CheckType(node, "BPE"));
    LS_RETURN_IF_ERROR(
        node.RefuseUnknown({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                            "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"}));
    if (const JsonView dropout = node.At("dropout"); !IsNull(dropout) && dropout.value() != 0) {
      return dropout.Wrong("null: ids must not depend on chance");
    }
    for (const std::string_view affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!IsNull(node.At(affix)) && !node.At(affix).Is("")) return node.Wrong(affix, "null or empty");
    }
    LS_RETURN_IF_ERROR(CheckFalse(node.At("byte_fallback")));
    LS_ASSIGN_OR_RETURN(file_.fuse_unknown, BooleanOr(false, node.At("fuse_unk")));
    LS_ASSIGN_OR_RETURN(file_.ignore_merges, BooleanOr(false, node.At("ignore_merges")));
    LS_RETURN_IF_ERROR(ReadVocabulary(node.At("vocab")));
    LS_RETURN_IF_ERROR(ReadMerges(node.At("merges")));
    if (const JsonView unknown = node.At("unk_token"); !IsNull(unknown)) {
      LS_ASSIGN_OR_RETURN(const std::string_view symbol, unknown.Text());
      if (!id_of_.contains(symbol)) return unknown.Wrong("null or a symbol of model.vocab");
      file_.unknown_id = id_of_.at(symbol);
    }
    return absl::OkStatus();
  }

  absl::Status ReadVocabulary(const JsonView& node) {
    if (!node.is_object() || node.size() == 0) return node.Wrong("an object with a symbol's id for each");
    file_.pieces.resize(static_cast<size_t>(vocabulary_size_));
    file_.byte_ids.fill(-1);
    for (const auto& [symbol, unused] : node.value().items()) {
      const JsonView entry = node.At(symbol);
      if (symbol.empty()) return entry.Wrong("absent: a symbol is not empty");
      LS_ASSIGN_OR_RETURN(const int32_t id, Id(entry));
      LS_RETURN_IF_ERROR(TakeId(entry, id));
      id_of_.emplace(symbol, id);
      const std::optional<std::string> piece = PieceOf(symbol);
      if (piece.has_value()) {
        file_.symbols.push_back(id);
        if (piece->size() == 1) file_.byte_ids[static_cast<uint8_t>((*piece)[0])] = id;
      }
      file_.pieces[id] = piece.value_or(symbol);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int32_t> Id(const JsonView& node) const {
    const bool is_integer = !node.is_absent() && node.value().is_number_unsigned();
    if (!is_integer || node.value().get<uint64_t>() >= static_cast<uint64_t>(vocabulary_size_)) {
      return node.Wrong(absl::StrFormat("an id in 0..%d, since the model's vocabulary_size is %d", vocabulary_size_ - 1,
                                        vocabulary_size_));
    }
    return node.value().get<int32_t>();
  }

  absl::Status TakeId(const JsonView& node, int32_t id) {
    return taken_.insert(id).second ? absl::OkStatus() : node.Wrong("an id that no other symbol has");
  }

  // A pair is a list of two symbols; in older files, a string with a space between them.
  absl::Status ReadMerges(const JsonView& node) {
    if (!node.is_list()) return node.Wrong("a list");
    for (size_t i = 0; i < node.size(); ++i) {
      const nlohmann::json& entry = node.value()[i];
      std::pair<std::string_view, std::string_view> pair;
      if (entry.is_string()) {
        const std::string_view text = entry.get_ref<const std::string&>();
        if (text.starts_with("#version")) continue;
        const size_t space = text.find(' ');
        if (space != std::string_view::npos) pair = {text.substr(0, space), text.substr(space + 1)};
      } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
        pair = {entry[0].get_ref<const std::string&>(), entry[1].get_ref<const std::string&>()};
      }
      const auto left = id_of_.find(pair.first);
      const auto right = id_of_.find(pair.second);
      const std::string both = std::string(pair.first).append(pair.second);
      const auto merged = id_of_.find(both);
      if (left == id_of_.end() || right == id_of_.end() || merged == id_of_.end()) {
        return node.At(i).Wrong("two symbols of model.vocab that together are one");
      }
      if (!file_.merges.Add(left->second, right->second, merged->second)) {
        return node.At(i).Wrong("a pair that is not yet in the list");
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadAddedTokens(const JsonView& node) {
    if (node.is_absent()) return absl::OkStatus();
    if (!node.is_list()) return node.Wrong("a list");
    // A token that is not in the vocabulary has the next id, from the number of symbols on.
    auto next = static_cast<int32_t>(id_of_.size());
    for (size_t i = 0; i < node.size(); ++i) {
      const JsonView entry = node.At(i);
      LS_RETURN_IF_ERROR(
          entry.RefuseUnknown({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
      AddedToken token;
      LS_ASSIGN_OR_RETURN(const std::string_view content, entry.At("content").Text());
      if (content.empty() || content.size() > AddedTokens::kMaxContentBytes) {
        return entry.Wrong("content", absl::StrFormat("1 to %d bytes", AddedTokens::kMaxContentBytes));
      }
      if (!added_.insert(content).second) return entry.Wrong("content", "a token that is not yet in the list");
      token.content = content;
      LS_ASSIGN_OR_RETURN(token.id, Id(entry.At("id")));
      LS_ASSIGN_OR_RETURN(token.single_word, entry.Boolean("single_word"));
      LS_ASSIGN_OR_RETURN(token.left_strip, entry.Boolean("lstrip"));
      LS_ASSIGN_OR_RETURN(token.right_strip, entry.Boolean("rstrip"));
      LS_ASSIGN_OR_RETURN(const bool normalized, entry.Boolean("normalized"));
      LS_RETURN_IF_ERROR(entry.Boolean("special").status());
      const auto known = id_of_.find(content);
      const int32_t expected = known != id_of_.end() ? known->second : next++;
      if (token.id != expected) {
        return entry.Wrong("id",
                           absl::StrFormat("%d, which Hugging Face gives %s", expected, QuoteForMessage(content)));
      }
      if (known == id_of_.end()) {
        LS_RETURN_IF_ERROR(TakeId(entry.At("id"), token.id));
        id_of_.emplace(content, token.id);
      }
      file_.pieces[token.id] = content;
      (normalized ? file_.normalized_added : file_.added).push_back(std::move(token));
    }
    return absl::OkStatus();
  }

  absl::Status ReadPostProcessor(const JsonView& node) {
    constexpr std::string_view kWanted =
        "RobertaProcessing, TemplateProcessing, or a Sequence of ByteLevel and TemplateProcessing, so that sequences "
        "begin with <s> and end with </s>";
    if (!node.is_object()) return node.Wrong(kWanted);
    const JsonView type = node.At("type");
    if (type.Is("RobertaProcessing")) return ReadRoberta(node);
    if (type.Is("TemplateProcessing")) return ReadTemplate(node);
    if (!type.Is("Sequence")) return type.Wrong(kWanted);
    LS_RETURN_IF_ERROR(node.RefuseUnknown({"type", "processors"}));
    const JsonView list = node.At("processors");
    if (!list.is_list() || list.size() != 2 || !list.At(0).is_object() || !list.At(1).is_object()) {
      return list.Wrong("a list of ByteLevel and TemplateProcessing");
    }
    LS_RETURN_IF_ERROR(CheckByteLevel(list.At(0)));
    LS_RETURN_IF_ERROR(ReadTrimming(list.At(0)));
    LS_RETURN_IF_ERROR(CheckType(list.At(1), "TemplateProcessing"));
    return ReadTemplate(list.At(1));
  }

  absl::Status ReadTrimming(const JsonView& node) {
    LS_ASSIGN_OR_RETURN(file_.trim_offsets, node.Boolean("trim_offsets"));
    LS_ASSIGN_OR_RETURN(file_.trim_added_space, node.Boolean("add_prefix_space"));
    return absl::OkStatus();
  }

  absl::Status ReadRoberta(const JsonView& node) {
    LS_RETURN_IF_ERROR(node.RefuseUnknown({"type", "sep", "cls", "trim_offsets", "add_prefix_space"}));
    LS_RETURN_IF_ERROR(ReadTrimming(node));
    LS_ASSIGN_OR_RETURN(file_.begin_id, ReadNamedId(node.At("cls")));
    LS_ASSIGN_OR_RETURN(file_.end_id, ReadNamedId(node.At("sep")));
    return absl::OkStatus();
  }

  // ["<s>", 0]
  absl::StatusOr<int32_t> ReadNamedId(const JsonView& node) const {
    if (!node.is_list() || node.size() != 2) return node.Wrong("a token and its id");
    LS_ASSIGN_OR_RETURN(const std::string_view token, node.At(0).Text());
    LS_ASSIGN_OR_RETURN(const int32_t id, Id(node.At(1)));
    return IdOf(node.At(0), token, id);
  }

  absl::StatusOr<int32_t> IdOf(const JsonView& node, std::string_view token, int32_t id) const {
    const auto found = id_of_.find(token);
    if (found != id_of_.end() && found->second == id) return id;
    return node.Wrong(absl::StrFormat("the token of id %d", id));
  }

  absl::Status ReadTemplate(const JsonView& node) {
    LS_RETURN_IF_ERROR(node.RefuseUnknown({"type", "single", "pair", "special_tokens"}));
    LS_ASSIGN_OR_RETURN(const std::vector<std::string_view> single, ReadPattern(node.At("single")));
    if (single.size() != 3 || single[1] != kFirst || single[0] == kFirst || single[2] == kFirst) {
      return node.Wrong("single", "a token, sequence A, a token: <s> A </s>");
    }
    LS_ASSIGN_OR_RETURN(const std::vector<std::string_view> pair, ReadPattern(node.At("pair")));
    const std::vector<std::string_view> wanted = {single[0], kFirst, single[2], single[2], kSecond, single[2]};
    if (pair != wanted) return node.Wrong("pair", "<s> A </s></s> B </s> with the tokens of single");
    const JsonView specials = node.At("special_tokens");
    if (!specials.is_object()) return specials.Wrong("an object");
    for (const auto& [token, unused] : specials.value().items()) LS_RETURN_IF_ERROR(CheckSpecial(specials.At(token)));
    LS_ASSIGN_OR_RETURN(file_.begin_id, ReadSpecial(specials, single[0]));
    LS_ASSIGN_OR_RETURN(file_.end_id, ReadSpecial(specials, single[2]));
    return absl::OkStatus();
  }

  // The tokens of a template; kFirst and kSecond stand for the sequences.
  absl::StatusOr<std::vector<std::string_view>> ReadPattern(const JsonView& node) const {
    if (!node.is_list() || node.size() > 6) return node.Wrong("a list of at most 6 parts");
    std::vector<std::string_view> parts;
    for (size_t i = 0; i < node.size(); ++i) {
      const JsonView part = node.At(i);
      LS_RETURN_IF_ERROR(part.RefuseUnknown({"SpecialToken", "Sequence"}));
      if (part.size() != 1) return part.Wrong("a SpecialToken or a Sequence");
      const bool is_sequence = part.Has("Sequence");
      const JsonView content = part.At(is_sequence ? "Sequence" : "SpecialToken");
      LS_RETURN_IF_ERROR(content.RefuseUnknown({"id", "type_id"}));
      LS_ASSIGN_OR_RETURN(const std::string_view id, content.At("id").Text());
      if (is_sequence && id != "A" && id != "B") return content.Wrong("id", "\"A\" or \"B\"");
      if (!is_sequence && id.empty()) return content.Wrong("id", "a token");
      const JsonView type = content.At("type_id");
      if (type.is_absent() || !type.value().is_number_unsigned() || type.value().get<uint64_t>() > UINT32_MAX) {
        return type.Wrong("an integer of 32 bits without a sign");
      }
      parts.push_back(!is_sequence ? id : id == "A" ? kFirst : kSecond);
    }
    return parts;
  }

  static absl::Status CheckSpecial(const JsonView& node) {
    LS_RETURN_IF_ERROR(node.RefuseUnknown({"id", "ids", "tokens"}));
    LS_RETURN_IF_ERROR(node.At("id").Text().status());
    const JsonView tokens = node.At("tokens");
    if (!tokens.is_list()) return tokens.Wrong("a list");
    for (size_t i = 0; i < tokens.size(); ++i) LS_RETURN_IF_ERROR(tokens.At(i).Text().status());
    return absl::OkStatus();
  }

  absl::StatusOr<int32_t> ReadSpecial(const JsonView& specials, std::string_view token) const {
    const JsonView ids = specials.At(token).At("ids");
    if (!ids.is_list() || ids.size() != 1) return ids.Wrong("a list of one id");
    LS_ASSIGN_OR_RETURN(const int32_t id, Id(ids.At(0)));
    return IdOf(ids.At(0), token, id);
  }

  // No token is like them, since they are not UTF-8.
  static constexpr std::string_view kFirst =
      "\xFF"
      "A";
  static constexpr std::string_view kSecond =
      "\xFF"
      "B";

  const int64_t vocabulary_size_;
  BpeFile file_;
  absl::flat_hash_map<std::string_view, int32_t> id_of_;  // of symbols and added tokens; points into the document
  absl::flat_hash_set<int32_t> taken_;                    // ids
  absl::flat_hash_set<std::string_view> added_;
};

}  // namespace

absl::StatusOr<BpeFile> ParseTokenizerJson(std::string_view text, const std::string& name, int64_t vocabulary_size) {
  LS_ASSIGN_OR_RETURN(const JsonView document, JsonView::Parse(text, name, kTokenizerLimits));
  return BpeReader(vocabulary_size).Read(document);
}

}  // namespace longshort::models
