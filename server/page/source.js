// Texts as the bytes of a file: a text field changes some of them, so a file may have to stay beside it.

import { toBase64 } from "./api.js";
import { byId, size } from "./dom.js";

const IN_FIELD = 100_000; // characters; a longer text is kept beside the field, which would be slow
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

// The text of bytes, with their byte order mark; null if they are not UTF-8.
export function decodeExactly(bytes) {
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}

export const encode = (text) => new TextEncoder().encode(text);

// All parts, one after the other.
export function joined(parts) {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

export const bytesOfFile = async (file) => new Uint8Array(await file.arrayBuffer());

// The bytes as an input of a call. As text where that keeps them: then models without bytes read it, too.
export function inputOf(bytes) {
  const text = decodeExactly(bytes);
  return text === null ? { raw: toBase64(bytes) } : { text };
}

// Why a field of text would not keep a text, in words; null if it would.
function reasonBeside(words) {
  if (words === null) return "not UTF-8";
  if (words.length > IN_FIELD) return "";
  if (words.includes("\r")) return "with its own line ends";
  if (words.startsWith("\ufeff")) return "with its byte order mark";
  return null;
}

// A text field, and beside it a file or long text that it would not keep. `chip` names that one and removes it.
export class Source {
  constructor(field, chip, changed) {
    this.field = field;
    this.chip = chip;
    this.changed = changed;
    this.kept = null; // {name, bytes, isFile}; null: the text is in the field
    chip.lastElementChild.addEventListener("click", () => {
      this.take("", new Uint8Array(0));
      field.focus();
    });
    field.addEventListener("paste", (event) => {
      const pasted = event.clipboardData.getData("text");
      if (pasted.length <= IN_FIELD) return;
      event.preventDefault();
      this.take("Pasted text", encode(pasted), { isFile: false });
    });
  }

  take(name, bytes, { isFile = true } = {}) {
    const words = decodeExactly(bytes);
    let reason = reasonBeside(words);
    this.field.value = reason === null ? words : "";
    if (reason === null && this.field.value !== words) {
      reason = "with characters that the field would change";
      this.field.value = "";
    }
    this.kept = reason === null ? null : { name, bytes, isFile };
    if (reason !== null) {
      this.chip.firstElementChild.textContent = `${name}, ${size(bytes.length)}${reason === "" ? "" : `, ${reason}`}`;
    }
    this.chip.hidden = this.kept === null;
    this.field.hidden = this.kept !== null;
    this.changed();
  }

  // Of the file; undefined for a text that was typed or pasted.
  get name() {
    return this.kept?.isFile ? this.kept.name : undefined;
  }

  // null if it is not UTF-8.
  get text() {
    return this.kept === null ? this.field.value : decodeExactly(this.kept.bytes);
  }

  get bytes() {
    return this.kept?.bytes ?? encode(this.field.value);
  }
}

// The Source of the elements PREFIX-text and PREFIX-chip.
export const sourceOf = (prefix, changed) => new Source(byId(`${prefix}-text`), byId(`${prefix}-chip`), changed);
