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

namespace longshort::models {
namespace {

using Json = nlohmann::json;

constexpr JsonLimits kTokenizerLimits = {.depth = 16, .elements = int64_t{1} << 22};

std::string Listed(std::initializer_list<std::string_view> names) {
  return absl::StrJoin(names, ", ", [](std::string* out, std::string_view name) { out->append(name); });
}

// A value of the file and its path in messages: "model.vocab".
class JsonNode final {
 public:
  JsonNode(const Json& value, std::string path, const std::string& file)
      : value_(value), path_(std::move(path)), file_(file) {}

  const Json& value() const { return value_; }
  bool IsNull() const { return value_.is_null(); }
  absl::Status Wrong(std::string_view wanted) const {
    std::string found = value_.type_name();
    if (value_.is_string()) found = QuoteForMessage(value_.get_ref<const std::string&>());
    if (value_.is_number() || value_.is_boolean()) found = value_.dump();
    return absl::InvalidArgumentError(absl::StrFormat("%s: %s is %s; it must be %s", file_, path_, found, wanted));
  }
  // An element of a list.
  JsonNode At(size_t index) const { return {value_[index], absl::StrFormat("%s[%d]", path_, index), file_}; }
  // A field of an object; null if it is absent.
  JsonNode At(std::string_view field) const {
    static const Json* const null = new Json();
    const auto found = value_.find(field);
    return {found == value_.end() ? *null : *found,
            path_.empty() ? std::string(field) : absl::StrFormat("%s.%s", path_, field), file_};
  }
  // Checks that it is an object with no other fields.
  absl::Status CheckFields(std::initializer_list<std::string_view> known) const {
    if (!value_.is_object()) return Wrong("an object");
    for (const auto& [field, unused] : value_.items()) {
      if (std::find(known.begin(), known.end(), field) != known.end()) continue;
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: unknown field %s%s; the fields are %s", file_, QuoteForMessage(field),
                          path_.empty() ? "" : absl::StrCat(" of ", path_), Listed(known)));
    }
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Boolean(std::optional<bool> if_absent = std::nullopt) const {
    if (IsNull() && if_absent) return *if_absent;
    if (!value_.is_boolean()) return Wrong("true or false");
    return value_.get<bool>();
  }
  absl::StatusOr<std::string_view> Text() const {
    if (!value_.is_string()) return Wrong("a string");
    return std::string_view(value_.get_ref<const std::string&>());
  }
  absl::StatusOr<int32_t> Id(int64_t vocabulary_size) const {
    const bool is_integer = value_.is_number_unsigned();
    if (!is_integer || value_.get<uint64_t>() >= static_cast<uint64_t>(vocabulary_size)) {
      return Wrong(absl::StrFormat("an id in 0..%d, since the model's vocabulary_size is %d", vocabulary_size - 1,
                                   vocabulary_size));
    }
    return value_.get<int32_t>();
  }
  // Checks that it is `wanted`, or absent.
  absl::Status CheckFalse() const {
    LS_ASSIGN_OR_RETURN(const bool value, Boolean(false));
    return value ? Wrong("false") : absl::OkStatus();
  }
  absl::Status CheckType(std::string_view type) const {
    const JsonNode found = At("type");
    return found.value() == type ? absl::OkStatus() : found.Wrong(absl::StrFormat("\"%s\"", type));
  }

 private:
  const Json& value_;
  const std::string path_;
  const std::string& file_;
};

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
  BpeReader(const std::string& name, int64_t vocabulary_size) : name_(name), vocabulary_size_(vocabulary_size) {}

  absl::StatusOr<BpeFile> Read(const Json& document) {
    const JsonNode top(document, "", name_);
    LS_RETURN_IF_ERROR(top.CheckFields({"version", "truncation", "padding", "added_tokens", "normalizer",
                                        "pre_tokenizer", "post_processor", "decoder", "model"}));
    if (const JsonNode version = top.At("version"); !version.IsNull() && version.value() != "1.0") {
      return version.Wrong("\"1.0\"");
    }
    LS_RETURN_IF_ERROR(CheckNormalizer(top.At("normalizer")));
    if (const JsonNode truncation = top.At("truncation"); truncation.value().is_object()) {
      const JsonNode direction = truncation.At("direction");
      if (!direction.IsNull() && direction.value() != "Right") return direction.Wrong("\"Right\"");
    }
    LS_RETURN_IF_ERROR(ReadPreTokenizer(top.At("pre_tokenizer")));
    LS_RETURN_IF_ERROR(ReadModel(top.At("model")));
    LS_RETURN_IF_ERROR(ReadAddedTokens(top.At("added_tokens")));
    LS_RETURN_IF_ERROR(ReadPostProcessor(top.At("post_processor")));
    return std::move(file_);
  }

 private:
  static absl::Status CheckNormalizer(const JsonNode& node) {
    constexpr std::string_view kWanted =
        "\"Sequence\" of no normalizers, or the normalizer null: texts are tokenized as they are";
    if (node.IsNull()) return absl::OkStatus();
    if (!node.value().is_object()) return node.Wrong("null");
    if (node.At("type").value() != "Sequence") return node.At("type").Wrong(kWanted);
    LS_RETURN_IF_ERROR(node.CheckFields({"type", "normalizers"}));
    const JsonNode list = node.At("normalizers");
    return list.value().is_array() && list.value().empty() ? absl::OkStatus() : list.Wrong("an empty list");
  }

  absl::Status ReadPreTokenizer(const JsonNode& node) {
    if (!node.value().is_object()) return node.Wrong("the pre-tokenizer ByteLevel");
    LS_RETURN_IF_ERROR(node.CheckType("ByteLevel"));
    LS_RETURN_IF_ERROR(node.CheckFields({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    LS_ASSIGN_OR_RETURN(file_.add_prefix_space, node.At("add_prefix_space").Boolean());
    LS_ASSIGN_OR_RETURN(const bool use_regex, node.At("use_regex").Boolean(true));
    return use_regex ? absl::OkStatus() : node.At("use_regex").Wrong("true");
  }

  absl::Status ReadModel(const JsonNode& node) {
    // Older files do not name the type.
    if (node.value().contains("type")) LS_RETURN_IF_ERROR(node.CheckType("BPE"));
    LS_RETURN_IF_ERROR(
        node.CheckFields({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk",
                          "byte_fallback", "ignore_merges", "vocab", "merges"}));
    if (const JsonNode dropout = node.At("dropout"); !dropout.IsNull() && dropout.value() != 0) {
      return dropout.Wrong("null: ids must not depend on chance");
    }
    const Json empty = "";
    for (const std::string_view affix : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!node.At(affix).IsNull() && node.At(affix).value() != empty) return node.At(affix).Wrong("null or empty");
    }
    LS_RETURN_IF_ERROR(node.At("byte_fallback").CheckFalse());
    LS_ASSIGN_OR_RETURN(file_.fuse_unknown, node.At("fuse_unk").Boolean(false));
    LS_ASSIGN_OR_RETURN(file_.ignore_merges, node.At("ignore_merges").Boolean(false));
    LS_RETURN_IF_ERROR(ReadVocabulary(node.At("vocab")));
    LS_RETURN_IF_ERROR(ReadMerges(node.At("merges")));
    if (const JsonNode unknown = node.At("unk_token"); !unknown.IsNull()) {
      LS_ASSIGN_OR_RETURN(const std::string_view symbol, unknown.Text());
      if (!id_of_.contains(symbol)) return unknown.Wrong("null or a symbol of model.vocab");
      file_.unknown_id = id_of_.at(symbol);
    }
    return absl::OkStatus();
  }

  absl::Status ReadVocabulary(const JsonNode& node) {
    if (!node.value().is_object() || node.value().empty()) return node.Wrong("an object with a symbol's id for each");
    file_.pieces.resize(static_cast<size_t>(vocabulary_size_));
    file_.byte_ids.fill(-1);
    for (const auto& [symbol, unused] : node.value().items()) {
      const JsonNode entry = node.At(symbol);
      if (symbol.empty()) return entry.Wrong("absent: a symbol is not empty");
      LS_ASSIGN_OR_RETURN(const int32_t id, entry.Id(vocabulary_size_));
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

  absl::Status TakeId(const JsonNode& node, int32_t id) {
    return taken_.insert(id).second ? absl::OkStatus() : node.Wrong("an id that no other symbol has");
  }

  // A pair is a list of two symbols; in older files, a string with a space between them.
  absl::Status ReadMerges(const JsonNode& node) {
    if (!node.value().is_array()) return node.Wrong("a list");
    for (size_t i = 0; i < node.value().size(); ++i) {
      const Json& entry = node.value()[i];
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

  absl::Status ReadAddedTokens(const JsonNode& node) {
    if (node.IsNull()) return absl::OkStatus();
    if (!node.value().is_array()) return node.Wrong("a list");
    // A token that is not in the vocabulary has the next id, from the number of symbols on.
    auto next = static_cast<int32_t>(id_of_.size());
    for (size_t i = 0; i < node.value().size(); ++i) {
      const JsonNode entry = node.At(i);
      LS_RETURN_IF_ERROR(
          entry.CheckFields({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
      AddedToken token;
      LS_ASSIGN_OR_RETURN(const std::string_view content, entry.At("content").Text());
      if (content.empty() || content.size() > AddedTokens::kMaxContentBytes) {
        return entry.At("content").Wrong(absl::StrFormat("1 to %d bytes", AddedTokens::kMaxContentBytes));
      }
      if (!added_.insert(content).second) return entry.At("content").Wrong("a token that is not yet in the list");
      token.content = content;
      LS_ASSIGN_OR_RETURN(token.id, entry.At("id").Id(vocabulary_size_));
      LS_ASSIGN_OR_RETURN(token.single_word, entry.At("single_word").Boolean());
      LS_ASSIGN_OR_RETURN(token.left_strip, entry.At("lstrip").Boolean());
      LS_ASSIGN_OR_RETURN(token.right_strip, entry.At("rstrip").Boolean());
      LS_ASSIGN_OR_RETURN(const bool normalized, entry.At("normalized").Boolean());
      LS_RETURN_IF_ERROR(entry.At("special").Boolean().status());
      const auto known = id_of_.find(content);
      const int32_t expected = known != id_of_.end() ? known->second : next++;
      if (token.id != expected) {
        return entry.At("id").Wrong(
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

  absl::Status ReadPostProcessor(const JsonNode& node) {
    constexpr std::string_view kWanted =
        "RobertaProcessing, TemplateProcessing, or a Sequence of ByteLevel and TemplateProcessing, so that sequences "
        "begin with <s> and end with </s>";
    if (!node.value().is_object()) return node.Wrong(kWanted);
    const JsonNode type = node.At("type");
    if (type.value() == "RobertaProcessing") return ReadRoberta(node);
    if (type.value() == "TemplateProcessing") return ReadTemplate(node);
    if (type.value() != "Sequence") return type.Wrong(kWanted);
    LS_RETURN_IF_ERROR(node.CheckFields({"type", "processors"}));
    const JsonNode list = node.At("processors");
    if (!list.value().is_array() || list.value().size() != 2 || !list.value()[0].is_object() ||
        !list.value()[1].is_object()) {
      return list.Wrong("a list of ByteLevel and TemplateProcessing");
    }
    LS_RETURN_IF_ERROR(list.At(0).CheckType("ByteLevel"));
    LS_RETURN_IF_ERROR(list.At(0).CheckFields({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
    LS_RETURN_IF_ERROR(ReadTrimming(list.At(0)));
    LS_RETURN_IF_ERROR(list.At(1).CheckType("TemplateProcessing"));
    return ReadTemplate(list.At(1));
  }

  absl::Status ReadTrimming(const JsonNode& node) {
    LS_ASSIGN_OR_RETURN(file_.trim_offsets, node.At("trim_offsets").Boolean());
    LS_ASSIGN_OR_RETURN(file_.trim_added_space, node.At("add_prefix_space").Boolean());
    return absl::OkStatus();
  }

  absl::Status ReadRoberta(const JsonNode& node) {
    LS_RETURN_IF_ERROR(node.CheckFields({"type", "sep", "cls", "trim_offsets", "add_prefix_space"}));
    LS_RETURN_IF_ERROR(ReadTrimming(node));
    LS_ASSIGN_OR_RETURN(file_.begin_id, ReadNamedId(node.At("cls")));
    LS_ASSIGN_OR_RETURN(file_.end_id, ReadNamedId(node.At("sep")));
    return absl::OkStatus();
  }

  // ["<s>", 0]
  absl::StatusOr<int32_t> ReadNamedId(const JsonNode& node) const {
    if (!node.value().is_array() || node.value().size() != 2) return node.Wrong("a token and its id");
    LS_ASSIGN_OR_RETURN(const std::string_view token, node.At(0).Text());
    LS_ASSIGN_OR_RETURN(const int32_t id, node.At(1).Id(vocabulary_size_));
    return IdOf(node.At(0), token, id);
  }

  absl::StatusOr<int32_t> IdOf(const JsonNode& node, std::string_view token, int32_t id) const {
    const auto found = id_of_.find(token);
    if (found != id_of_.end() && found->second == id) return id;
    return node.Wrong(absl::StrFormat("the token of id %d", id));
  }

  absl::Status ReadTemplate(const JsonNode& node) {
    LS_RETURN_IF_ERROR(node.CheckFields({"type", "single", "pair", "special_tokens"}));
    LS_ASSIGN_OR_RETURN(const std::vector<std::string_view> single, ReadPattern(node.At("single")));
    if (single.size() != 3 || single[1] != kFirst || single[0] == kFirst || single[2] == kFirst) {
      return node.At("single").Wrong("a token, sequence A, a token: <s> A </s>");
    }
    LS_ASSIGN_OR_RETURN(const std::vector<std::string_view> pair, ReadPattern(node.At("pair")));
    const std::vector<std::string_view> wanted = {single[0], kFirst, single[2], single[2], kSecond, single[2]};
    if (pair != wanted) return node.At("pair").Wrong("<s> A </s></s> B </s> with the tokens of single");
    const JsonNode specials = node.At("special_tokens");
    if (!specials.value().is_object()) return specials.Wrong("an object");
    LS_ASSIGN_OR_RETURN(file_.begin_id, ReadSpecial(specials, single[0]));
    LS_ASSIGN_OR_RETURN(file_.end_id, ReadSpecial(specials, single[2]));
    return absl::OkStatus();
  }

  // The tokens of a template; kFirst and kSecond stand for the sequences.
  absl::StatusOr<std::vector<std::string_view>> ReadPattern(const JsonNode& node) const {
    if (!node.value().is_array() || node.value().size() > 6) return node.Wrong("a list of at most 6 parts");
    std::vector<std::string_view> parts;
    for (size_t i = 0; i < node.value().size(); ++i) {
      const JsonNode part = node.At(i);
      LS_RETURN_IF_ERROR(part.CheckFields({"SpecialToken", "Sequence"}));
      if (part.value().size() != 1) return part.Wrong("a SpecialToken or a Sequence");
      const bool is_sequence = part.value().contains("Sequence");
      const JsonNode content = part.At(is_sequence ? "Sequence" : "SpecialToken");
      LS_RETURN_IF_ERROR(content.CheckFields({"id", "type_id"}));
      LS_ASSIGN_OR_RETURN(const std::string_view id, content.At("id").Text());
      if (is_sequence && id != "A" && id != "B") return content.At("id").Wrong("\"A\" or \"B\"");
      if (!is_sequence && id.empty()) return content.At("id").Wrong("a token");
      parts.push_back(!is_sequence ? id : id == "A" ? kFirst : kSecond);
    }
    return parts;
  }

  absl::StatusOr<int32_t> ReadSpecial(const JsonNode& specials, std::string_view token) const {
    const JsonNode node = specials.At(token);
    LS_RETURN_IF_ERROR(node.CheckFields({"id", "ids", "tokens"}));
    const JsonNode ids = node.At("ids");
    if (!ids.value().is_array() || ids.value().size() != 1) return ids.Wrong("a list of one id");
    LS_ASSIGN_OR_RETURN(const int32_t id, ids.At(0).Id(vocabulary_size_));
    return IdOf(ids.At(0), token, id);
  }

  // No token is like them, since they are not UTF-8.
  static constexpr std::string_view kFirst =
      "\xFF"
      "A";
  static constexpr std::string_view kSecond =
      "\xFF"
      "B";

  const std::string& name_;
  const int64_t vocabulary_size_;
  BpeFile file_;
  absl::flat_hash_map<std::string_view, int32_t> id_of_;  // of symbols and added tokens; points into the document
  absl::flat_hash_set<int32_t> taken_;                    // ids
  absl::flat_hash_set<std::string_view> added_;
};

}  // namespace

absl::StatusOr<BpeFile> ParseTokenizerJson(std::string_view text, const std::string& name, int64_t vocabulary_size) {
  LS_ASSIGN_OR_RETURN(const Json document, ParseJsonObject(text, name, kTokenizerLimits));
  return BpeReader(name, vocabulary_size).Read(document);
}

}  // namespace longshort::models
