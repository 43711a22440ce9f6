//! What a failed request means to whoever wanted something written.

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// Somebody else was faster: the object exists already, is gone, or has another version.
    #[error("somebody else was faster: {0}")]
    Overtaken(String),
    /// The API server says no, in these words.
    #[error("the API server refuses it: {0}")]
    Refused(String),
    /// We may not do it.
    #[error("{0}")]
    Forbidden(String),
    /// No answer, or one that means nothing. It may or may not have been done.
    #[error("{0}")]
    Failed(String),
}

impl ApiError {
    /// What an answer of this HTTP status means, with the API server's words.
    pub fn of(status: u16, words: String) -> Self {
        match status {
            404 | 409 => Self::Overtaken(words),
            401 | 403 => Self::Forbidden(words),
            // Too many requests, or none of its doing: it says nothing about the object.
            429 | 500.. => Self::Failed(words),
            _ => Self::Refused(words),
        }
    }

    /// The word for it in metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Overtaken(_) => "overtaken",
            Self::Refused(_) => "refused",
            Self::Forbidden(_) => "forbidden",
            Self::Failed(_) => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_means_one_of_four_things() {
        for (status, meaning) in [
            (400, "refused"),
            (401, "forbidden"),
            (403, "forbidden"),
            (404, "overtaken"),
            (409, "overtaken"),
            (410, "refused"),
            (422, "refused"),
            (428, "refused"),
            (429, "failed"),
            (499, "refused"),
            (500, "failed"),
            (503, "failed"),
            (504, "failed"),
        ] {
            assert_eq!(ApiError::of(status, String::new()).as_str(), meaning, "{status}");
        }
    }
}
